"""Kafka, Delta Lake and Iceberg for real, in an environment of their own: `make neighbours`."""
