"""Process functions, called with rows and timers of keys: state, timers, side outputs."""
