"""Where operators keep state between calls."""
