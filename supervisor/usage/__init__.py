"""What was called, by whom, how it ended and how long it took: of each call, and summed up over minutes to days."""
