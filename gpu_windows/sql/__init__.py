"""Flink's window SQL, translated to calls of the API; start reading at `query`."""
