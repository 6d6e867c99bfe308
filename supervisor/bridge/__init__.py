"""The daemon for clients that start a program: between their pipes and a WebSocket of the daemon."""
