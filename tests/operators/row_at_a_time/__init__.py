"""Tests of the reference operator, which takes a row at a time."""
