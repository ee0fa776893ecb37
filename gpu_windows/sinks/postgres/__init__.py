"""The sink for tables of PostgreSQL: rows and the record of their micro-batch in one transaction.

`sink` is the value, `writer` writes micro-batches, `commits` records them, `statements` has the SQL
and `columns` says which columns a table may have.
"""
