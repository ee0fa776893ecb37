"""Tests of what checkpoints hold."""
