"""Logging in to remote servers (OAuth 2.1 as MCP has it): discovery, registration, tokens, and who may be asked."""
