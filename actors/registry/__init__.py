"""The registry: facts of all servers in, one catalogue with its index out."""
