"""One process of a server: spawned, spoken with, and what its actor is told of it."""
