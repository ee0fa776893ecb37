"""Tests of the aggregates."""
