"""What the servers offer, as immutable snapshots. Pure; a published value never changes."""
