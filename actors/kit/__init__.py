"""The actor kit: mailboxes, actors, and cells that always hold the newest value."""
