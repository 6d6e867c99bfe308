"""Results and definitions for clients of older revisions: what they cannot take, in words that they can. Pure."""
