"""What people did, and what they approved: kept by the store."""
