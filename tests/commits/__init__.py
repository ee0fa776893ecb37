"""Tests of the log of commits."""
