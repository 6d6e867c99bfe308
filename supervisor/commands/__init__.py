"""The subcommands of `mcpvisor`, one module each."""
