"""The calls of one server: which wait, which is sent next, how long each may take. Pure."""
