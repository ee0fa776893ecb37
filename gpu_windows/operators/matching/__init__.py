"""Patterns of rows: rows that wait, the automaton, and what it keeps of keys."""
