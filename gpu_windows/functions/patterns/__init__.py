"""Patterns of rows (SQL: MATCH_RECOGNIZE): their description, automaton and conditions."""
