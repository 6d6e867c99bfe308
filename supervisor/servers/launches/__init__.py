"""Launches that not all share: whose values hold, what a name means to whom, and what runs."""
