"""Formats shared by driver and tasks: kinds of rows, clocks, watermarks, records of shards."""
