"""Code of Spark's Python workers: packs rows for a shuffle and runs operators on shards."""
