"""What operators order of a server and read of it: orders, its story, its journal."""
