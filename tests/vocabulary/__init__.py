"""Tests of windows, triggers and watermarks by themselves."""
