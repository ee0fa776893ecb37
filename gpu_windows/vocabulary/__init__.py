"""What queries are said in: windows, triggers, evictors, watermarks, frames, options."""
