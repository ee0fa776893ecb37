"""How each engine writes the query of the benchmarks: ``(key, window) -> sum, count, max``."""
