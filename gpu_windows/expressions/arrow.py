"""Spark SQL expressions over Arrow tables: those that Arrow can compute with the same result.

Nulls, NaN (greater than all numbers, and equal to itself), result types, which parts are evaluated
for a row and which values are errors follow Spark in ANSI mode, in a session in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import pyarrow as pa
from pyarrow import types
from sqlglot import exp

from gpu_windows.errors import ColumnTypeError, SqlError
from gpu_windows.expressions.columns import ColumnNames, Columns
from gpu_windows.expressions.evaluator import Evaluator
from gpu_windows.expressions.functions.json_texts import one_evaluation
from gpu_windows.expressions.sql_text import check_text, parse_expression, sql_error
from gpu_windows.expressions.values import Value


def compute(text: str | exp.Expr, table: pa.Table) -> pa.ChunkedArray:
    """Return the values of an expression for the rows of a table.

    Raises
    ------
    SqlError
        If it cannot be parsed, is not covered over Arrow tables, or names a column that does not
        exist.
    ExpressionError
        If a row has no value, such as a quotient by 0.
    """
    node = _node(text)
    if isinstance(node, exp.Column) and not node.table:
        return table.column(ColumnNames(tuple(table.column_names)).resolve(node))
    return _column(_values(node, table), len(table))


def compute_columns(
    texts: Mapping[str, str | exp.Expr], table: pa.Table
) -> dict[str, pa.ChunkedArray]:
    """Return the values of several expressions by name; see `compute`."""
    with one_evaluation():
        return {name: compute(text, table) for name, text in texts.items()}


def evaluate_condition(text: str, table: pa.Table) -> pa.ChunkedArray:
    """Return a mask of the rows for which a condition is true.

    Raises
    ------
    SqlError, ExpressionError
        See `compute`.
    ColumnTypeError
        If it is not a boolean expression.
    """
    found = _values(_node(text), table)
    if not (types.is_boolean(found.dtype) or types.is_null(found.dtype)):
        rule = f"a condition is true or false: {text}"
        raise ColumnTypeError(rule, value=str(found.dtype))
    return _column(found.cast(pa.bool_()), len(table))


def build_expression(text: str | exp.Expr, schema: pa.Schema) -> Value:
    """Return an Arrow expression over the columns of a schema and its type, for joins.

    Raises
    ------
    SqlError
        See `compute`.
    """
    return _evaluate(Columns(schema.empty_table(), builds=True), _node(text))


def _node(text: str | exp.Expr) -> exp.Expr:
    return text if isinstance(text, exp.Expr) else _parse(check_text(text))


@lru_cache(maxsize=1_000)
def _parse(text: str) -> exp.Expr:
    """Parse an expression, once for all batches: evaluation does not change it."""
    return parse_expression(text)


def _values(node: exp.Expr, table: pa.Table) -> Value:
    """Evaluate on no rows first, to separate errors of the text from errors of a row."""
    try:
        found = _evaluate(Columns(table.schema.empty_table()), node)
    except SqlError as error:
        if error.line is not None:
            raise
        # no part has a position, as in `-true`: report the whole text
        raise SqlError(error.rule, value=error.value, line=1, position=1) from None
    return _evaluate(Columns(table), node) if len(table) else found


def _evaluate(columns: Columns, node: exp.Expr) -> Value:
    try:
        with one_evaluation():
            return Evaluator(columns).evaluate(node)
    except RecursionError:
        raise sql_error(node, "an expression is nested too deeply") from None


def _column(value: Value, length: int) -> pa.ChunkedArray:
    rows = value.rows
    if isinstance(rows, pa.Scalar):
        rows = pa.repeat(rows, length)
    return rows if isinstance(rows, pa.ChunkedArray) else pa.chunked_array([rows])
