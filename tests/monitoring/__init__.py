"""Tests of what queries tell of themselves."""
