"""Columns between Spark and Arrow: types, names and expressions."""
