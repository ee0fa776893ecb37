"""Tests of the documentation: its examples, links, pictures and notebooks."""
