"""Expressions in SQL."""
