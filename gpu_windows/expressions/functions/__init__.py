"""Spark's scalar functions over Arrow arrays, by subject; `table.py` has them by name."""
