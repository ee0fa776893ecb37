"""One module for each kind of SELECT: it recognizes a statement, and reads it as API calls."""
