"""Windows from partial aggregates: of slices of time or of row numbers, and bounded sessions."""
