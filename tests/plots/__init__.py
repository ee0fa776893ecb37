"""Tests of the plots."""
