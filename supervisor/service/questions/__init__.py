"""Questions of servers: how many, whose, and where they wait for an answer."""
