"""What stands beside the results of streaming queries, so that readers see each row once."""
