"""The vocabulary of queries: windows, triggers, evictors, watermarks, frames, options."""
