"""Results of windows in which a key has no rows."""
