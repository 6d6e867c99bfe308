"""MCP over Streamable HTTP, both eras."""
