"""Calls of tools: by their path or through a meta-tool, counted, and what failed in words."""
