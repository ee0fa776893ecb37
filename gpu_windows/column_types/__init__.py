"""Types of columns: what they hold, in whatever form it comes, and what may be done with them."""
