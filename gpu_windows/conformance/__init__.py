"""Replays recorded scenarios of Apache Flink and compares, field by field."""
