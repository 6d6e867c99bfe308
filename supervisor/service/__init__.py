"""What answers the methods of MCP behind the front."""
