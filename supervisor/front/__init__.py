"""The front: MCP over HTTP and WebSocket, and the pages for operators."""
