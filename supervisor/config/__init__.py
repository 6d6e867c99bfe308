"""The configuration: the `mcpServers` JSON that people already have, and our settings beside it."""
