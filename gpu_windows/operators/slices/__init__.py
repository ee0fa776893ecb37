"""What becomes partials: slices of time, sessions of a bounded input, row numbers."""
