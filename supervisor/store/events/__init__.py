"""Events that are kept in the database."""
