"""The text of a configuration: JSON with positions, keys, values, units, variables, addresses."""
