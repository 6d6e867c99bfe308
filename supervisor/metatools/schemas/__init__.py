"""Input schemas as a model reads them. Pure."""
