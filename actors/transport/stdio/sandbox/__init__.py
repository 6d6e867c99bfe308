"""A sandbox for one server: what it may see of this machine, and how bubblewrap is told."""
