"""What a model is told of servers: what they are for, and why some cannot be used. Pure."""
