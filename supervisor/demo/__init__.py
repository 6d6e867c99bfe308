"""A tour of the daemon with small MCP servers that ship with it: nothing else needs to be installed."""
