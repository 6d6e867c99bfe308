"""What is searched: documents of all servers with their words and meanings."""
