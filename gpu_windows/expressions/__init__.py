"""Expressions in Spark's SQL, as texts: Spark reads them itself; here they become Arrow's."""
