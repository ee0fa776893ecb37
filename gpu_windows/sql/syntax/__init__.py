"""The text of a statement: its tree with the meaning that Flink gives it, clause by clause."""
