"""What the documentation is generated from."""
