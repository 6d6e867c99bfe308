"""Asking the clients of servers: a call with everything that is asked before it has its result, across the eras."""
