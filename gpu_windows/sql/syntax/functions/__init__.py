"""The scalar functions of statements, as Spark expressions with Flink's results.

Functions without an entry are refused. Results are compared with values recorded from Flink 2.3
(`tests/sql/recorded_values.json`). On Arrow tables these expressions are evaluated by
`gpu_windows.expressions`.
"""
