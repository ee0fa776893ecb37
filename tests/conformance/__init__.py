"""Tests that recorded runs of Flink come out alike."""
