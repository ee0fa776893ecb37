"""Aggregates: partial aggregates of rows, how they combine, how they become results."""
