"""MCP without I/O: framing, JSON-RPC, correlation and the choice of the era. Pure: time and ids are arguments."""
