"""One entry of `mcpServers`: its settings, read and checked."""
