"""What the driver and tasks agree on: kinds of rows, clocks, watermarks, records of shards."""
