"""A standalone cluster of Spark on loopback, whose executors and workers may be killed."""
