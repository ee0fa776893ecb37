"""Aggregates: what is kept of a row, how it combines, how it becomes a result."""
