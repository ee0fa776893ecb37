"""Scalar expressions that Flink is asked for, over tables of edge values."""
