"""What a server offers: its lists read, their changes followed, and who is told of resources."""
