"""State of single keys: declared state, timers, key values, and their entries in a log."""
