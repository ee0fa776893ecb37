"""DataFrames as sources of queries: their columns, their inputs, and the rows of stages."""
