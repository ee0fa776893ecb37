"""VALUES: rows of constants, which Arrow computes; and the one row of a query without FROM."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
from sqlglot import exp

from gpu_windows.column_types.widening import common_type
from gpu_windows.datastream.stream import Stream, stream
from gpu_windows.expressions.arrow import compute
from gpu_windows.expressions.sql_text import errors_at, sql_error
from gpu_windows.sql.api_call import ApiCall
from gpu_windows.sql.tables.inputs import Input
from gpu_windows.sql.tables.unions import FLOATS, float_of

#: The column of a row that has none: a table without columns has no length.
_ROW = "sql_row"


def constant_rows(node: exp.Values) -> Input:
    """Return the rows of VALUES as a table; without any, one row that has no columns.

    Columns have the names of ``AS t(a, b)``, else ``EXPR$0`` and so on; types as in UNION ALL.

    Raises
    ------
    SqlError
        If rows differ in their number of columns, or values have no common type.
    """
    nothing = _as_input("", pa.table({_ROW: [0]}), ())
    if not node.expressions:
        return nothing
    alias = node.args.get("alias")
    rows = [_items(each) for each in node.expressions]
    names = [] if alias is None else [each.name for each in alias.args.get("columns") or ()]
    names = names or [f"EXPR${i}" for i in range(len(rows[0]))]
    for number, items in enumerate(rows):
        if len(items) != len(names):
            rule = f"the rows of VALUES have the same number of columns: {len(names)}"
            raise sql_error(node.expressions[number], rule, len(items))
    if len({name.lower() for name in names}) < len(names):
        raise sql_error(alias or node, "two columns of VALUES have the same name")
    columns = zip(*rows, strict=True)
    table = pa.table({n: _column(nothing, each) for n, each in zip(names, columns, strict=True)})
    return _as_input("" if alias is None else alias.name, table, tuple(names))


def _as_input(alias: str, table: pa.Table, names: tuple[str, ...]) -> Input:
    code = f"gw.stream(pa.table({table.to_pydict()!r}))"
    begun: Stream = stream(table)
    return Input(alias, ApiCall(begun._without_time, code), columns={name: name for name in names})


def _items(row: exp.Expr) -> Sequence[exp.Expr]:
    """Return the values of a row: ``(1, 'a')``, or one value."""
    return row.expressions if isinstance(row, exp.Tuple) else [row]


def _column(nothing: Input, items: Sequence[exp.Expr]) -> pa.ChunkedArray:
    """Return the values of a column, cast to their common type."""
    arrays = [_value(nothing, each) for each in items]
    dtypes = [each.type for each in arrays]
    floats = [FLOATS.get(float_of(dtypes, own) or "", own) for own in dtypes]
    dtype = reduce(lambda a, b: None if a is None else common_type(a, b), floats[1:], floats[0])
    if dtype is None:
        rule = "the values of a column of VALUES have a common type: CAST them"
        raise sql_error(items[-1], rule, ", ".join(map(str, dict.fromkeys(dtypes))))
    return pa.chunked_array([each.cast(dtype) for each in arrays], dtype).combine_chunks()


def _value(nothing: Input, node: exp.Expr) -> pa.Array:
    """Return the value of an expression without columns, in an array of one."""
    with errors_at(node):
        return compute(nothing.spark_text(node), pa.table({_ROW: [0]})).combine_chunks()
