"""Names of tools, prompts and resources: made, and what one means that a client wrote."""
