"""Token counts: what definitions cost a model."""
