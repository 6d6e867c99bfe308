"""The metrics of the daemon: which there are, what is counted for them, as families that prometheus-client writes."""
