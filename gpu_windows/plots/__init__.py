"""Pictures of what a query does with a few rows."""
