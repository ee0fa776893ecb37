"""Spark SQL expressions, evaluated over Arrow tables with Spark's results."""
