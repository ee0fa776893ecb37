"""Tests of what is told of checkpoints."""
