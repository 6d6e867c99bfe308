"""Entries of lists as the protocol has them: its schema as types, and what becomes of an entry that does not fit it."""
