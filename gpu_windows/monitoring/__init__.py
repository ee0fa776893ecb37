"""Metrics of running queries."""
