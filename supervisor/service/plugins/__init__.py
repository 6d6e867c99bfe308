"""Calls of tools as plugins see them, and what plugins ask whoever makes one."""
