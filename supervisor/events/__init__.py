"""What the daemon tells others of: every kind of event with its fields, and who may hear of it. Pure."""
