"""The four meta-tools: what is read from a call, and what an answer shows. Pure."""
