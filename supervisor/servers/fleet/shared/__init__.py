"""What the nodes of a fleet have in common besides servers."""
