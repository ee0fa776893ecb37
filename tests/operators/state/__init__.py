"""Tests of what operators keep in a store."""
