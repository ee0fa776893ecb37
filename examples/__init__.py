"""Whole programs that use gpu_windows."""
