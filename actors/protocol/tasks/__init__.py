"""Tasks as the two eras write them, and calls driven by us until they have their result."""
