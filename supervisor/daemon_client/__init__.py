"""How our own programs talk to a running daemon, from outside of it."""
