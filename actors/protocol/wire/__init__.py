"""Messages as bytes: lines, JSON-RPC, what a text costs to read, and why one does not come."""
