"""Flink SQL as people write it, and what a Flink 2.3 makes of it."""
