"""Tests of checkpoints: state files, commits."""
