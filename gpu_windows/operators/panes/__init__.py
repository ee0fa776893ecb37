"""What looks at single rows: each key and window is a state machine, compiled."""
