"""The reference operator: row at a time, in plain Python, over objects; it runs user code."""
