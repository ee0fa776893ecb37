"""Queries on batch DataFrames, on the driver."""
