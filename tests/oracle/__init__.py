"""The oracle: scenarios run on a real Apache Flink. ``python -m tests.oracle --help``."""
