"""Queries on streaming DataFrames, on the driver: a job and a commit for each micro-batch."""
