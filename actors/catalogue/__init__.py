"""What the servers offer, as immutable snapshots."""
