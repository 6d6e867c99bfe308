"""The configuration changes while the daemon runs: what is different, and how that is applied."""
