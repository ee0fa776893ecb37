"""DataFrames as sources of queries: their columns, their inputs, and what a stage is made of."""
