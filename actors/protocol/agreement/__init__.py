"""What is agreed on with a server: the era, the revision, what clients can be asked."""
