"""Servers that are reached by HTTP: Streamable HTTP of both eras."""
