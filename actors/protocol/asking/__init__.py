"""What a server asks for: questions, forms, addresses to open, results that are not complete."""
