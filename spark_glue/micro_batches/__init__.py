"""Micro-batches of streaming queries: one job each, then one commit of state and results."""
