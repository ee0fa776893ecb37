"""Files that tasks read themselves, in batch and on streams."""
