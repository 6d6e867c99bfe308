"""How generously the arguments of a call are read. Pure."""
