"""Results at paths: the files of micro-batches, who may write them, and how they are read."""
