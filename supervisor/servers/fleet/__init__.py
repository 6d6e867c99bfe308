"""The servers of a daemon that is a node of a fleet: it runs those that it owns, and reaches the others."""
