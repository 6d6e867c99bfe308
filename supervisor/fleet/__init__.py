"""A fleet: many daemons behind one address, which share leases, catalogues, sessions and events over an engine."""
