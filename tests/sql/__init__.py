"""Queries in SQL."""
