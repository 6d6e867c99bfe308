"""What runs: the actors, their messages, and the pure logic they apply."""
