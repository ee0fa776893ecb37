"""Tests of slices, sessions and counts."""
