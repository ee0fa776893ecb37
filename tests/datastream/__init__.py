"""Tests of streams, keyed and windowed, on tables and elsewhere."""
