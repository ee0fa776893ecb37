"""Tests of functions."""
