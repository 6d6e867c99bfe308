"""Several instances of one launch behind one address: equal processes, or replicas of a remote server."""
