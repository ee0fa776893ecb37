"""Sinks that write to tables of Delta Lake and Apache Iceberg, each micro-batch once."""
