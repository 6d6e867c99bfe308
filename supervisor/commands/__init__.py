"""The subcommands of `mcp-supervisor`, one module each."""
