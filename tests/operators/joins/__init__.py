"""Tests of window joins and interval joins, on every runner."""
