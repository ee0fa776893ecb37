"""Pictures: of window results, and of what a query does with a few rows."""
