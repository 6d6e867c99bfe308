"""The metrics of the daemon: which there are, what is counted for them, how they are written for Prometheus."""
