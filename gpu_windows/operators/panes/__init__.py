"""The buffer strategy: a compiled state machine for each key and window."""
