"""What a model is shown: pages, rows, lists. Pure."""
