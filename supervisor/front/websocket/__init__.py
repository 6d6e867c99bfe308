"""MCP over WebSocket, both eras."""
