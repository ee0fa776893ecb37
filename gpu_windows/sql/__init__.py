"""Flink's window SQL as calls of the API: `query` is where it begins, `translate` the way."""
