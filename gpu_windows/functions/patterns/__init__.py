"""Patterns of rows (SQL: MATCH_RECOGNIZE): what is asked for, and its automaton."""
