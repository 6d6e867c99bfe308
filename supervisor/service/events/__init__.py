"""Events of all servers and of the daemon, at the doors of many servers (SEP-3415)."""
