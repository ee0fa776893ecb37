"""Functions of users over single rows of keys: state, timers, side outputs."""
