"""The life of a server: its states, its restarts, and their picture. Pure."""
