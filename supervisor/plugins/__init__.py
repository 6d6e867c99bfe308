"""Plugins: what one may do, how it is found, how the daemon runs it. Who writes one imports `contract`."""
