"""Sinks that write to tables of Delta Lake and Apache Iceberg, each micro-batch once.

All of it is SQL and settings: no Python package of theirs is needed, and Spark Connect will do.
"""
