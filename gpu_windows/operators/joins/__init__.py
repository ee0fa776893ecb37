"""Joins in time, in columns."""
