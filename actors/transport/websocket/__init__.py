"""Servers that are reached by WebSocket: one message of MCP is one text message."""
