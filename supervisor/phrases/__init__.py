"""Sentences by which people ask for the tools of published servers."""
