"""The pages for operators and programs."""
