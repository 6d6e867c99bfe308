"""DaemonEvents on their way: kept for those who read them as they come, and sent to where the configuration says."""
