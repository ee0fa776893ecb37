"""What is kept for single keys: declared state, timers, values."""
