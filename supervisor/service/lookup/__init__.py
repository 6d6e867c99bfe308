"""What a client may see, and what it means by a name."""
