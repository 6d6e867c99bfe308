"""What operators order of a server and read of it: orders, its record, its journal."""
