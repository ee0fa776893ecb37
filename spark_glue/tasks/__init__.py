"""What runs in Spark's Python workers: rows packed, shuffled and given to operators."""
