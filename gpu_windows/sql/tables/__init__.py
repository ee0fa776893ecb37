"""Tables of FROM and results of queries: their columns by name, and rows made of results."""
