"""The daemon and its host: descriptors, the hard end, what must be loaded before anything may be missing."""
