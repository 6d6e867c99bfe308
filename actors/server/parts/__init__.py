"""The parts of one server that do what its life needs, and the context that they share; few of them know each other."""
