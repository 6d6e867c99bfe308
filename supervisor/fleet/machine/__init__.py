"""Several nodes on one machine behind one address: who starts them, and what each of them is told."""
