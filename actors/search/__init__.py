"""Finding the right tool for a sentence. Pure: no trio, no clock, no files."""
