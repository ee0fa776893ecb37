"""OVER aggregates: for each row, over a frame of rows of its key."""
