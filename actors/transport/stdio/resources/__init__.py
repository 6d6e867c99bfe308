"""What servers take of the machine, how much of it there is, and what one server may take at most."""
