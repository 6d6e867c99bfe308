"""What a server offers: its lists read, and their changes followed."""
