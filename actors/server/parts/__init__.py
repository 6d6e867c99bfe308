"""The parts of one server that do what its life needs: each knows the context that they share, and few each other."""
