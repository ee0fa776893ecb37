"""Checkpoints of streaming queries: state files, and commits that name the live ones."""
