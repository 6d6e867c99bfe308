"""The HTTP client of one server: how it connects, whom it trusts, how it reads, what a failure means."""
