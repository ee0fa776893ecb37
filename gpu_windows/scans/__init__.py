"""Files whose rows are read where they are used: listed, split, and read by Arrow."""
