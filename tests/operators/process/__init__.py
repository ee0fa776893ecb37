"""Tests of `gpu_windows.operators.process`."""
