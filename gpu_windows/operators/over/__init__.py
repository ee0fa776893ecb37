"""Aggregates over frames: for each row, of the rows of its key before and after it."""
