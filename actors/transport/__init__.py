"""How bytes reach a server: processes, and memory for tests."""
