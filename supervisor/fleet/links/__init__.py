"""Between two nodes: one connection for each direction of asking, on which many calls share."""
