"""What we say of ourselves to clients: instructions, description."""
