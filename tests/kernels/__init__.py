"""Tests of the kernels, and what they compute in plain Python."""
