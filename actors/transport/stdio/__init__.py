"""What is special about servers that are child processes."""
