"""Results that are too large for a model: shortened, kept, and read piece by piece."""
