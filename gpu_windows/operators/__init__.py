"""Operators: columnar, stateful, independent of Spark; and the reference, row at a time."""
