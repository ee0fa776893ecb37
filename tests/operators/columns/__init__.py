"""Tests of columns: keys, partials and sketches."""
