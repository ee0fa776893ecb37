"""Queries of tests, and tests of what queries refuse."""
