"""Keeping turns of the loop short: pauses, wakes, work beside it."""
