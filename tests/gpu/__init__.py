"""Checks on a real CUDA device; skipped where there is none."""
