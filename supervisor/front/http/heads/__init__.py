"""The heads of requests: what decides something, and whether they agree with their message. Pure."""
