"""Arrow columns as the arrays of kernels: keys, values, partials, results."""
