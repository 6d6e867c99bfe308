"""The servers of a configuration: supervised, ordered about, kept a journal of."""
