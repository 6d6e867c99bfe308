"""MCP without I/O: framing, JSON-RPC, correlation and the choice of the era."""
