"""Who asks: tokens, people and teams, and the gate before everything."""
