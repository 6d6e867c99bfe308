"""What several share: a bound, turns of the loop, places, starts."""
