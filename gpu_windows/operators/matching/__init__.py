"""Patterns of rows: buffered rows, the automaton, and its state by key."""
