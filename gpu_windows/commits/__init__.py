"""Records beside the results of queries, by which readers see each row exactly once."""
