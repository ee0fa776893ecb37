"""Tests of panes: windows of rows or accumulators, kept by key."""
