"""What clients say and are told, whatever carries it."""
