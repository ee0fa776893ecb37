"""UNION ALL, the rows of several tables by position, and VALUES, rows of constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyarrow import types
from sqlglot import exp

from gpu_windows.column_types.widening import common_type
from gpu_windows.datastream.stream import Stream, stream
from gpu_windows.expressions.arrow import compute
from gpu_windows.expressions.sql_text import errors_at, sql_error, to_spark_sql
from gpu_windows.planning.own_columns import NO_TIME
from gpu_windows.sql.api_call import ApiCall
from gpu_windows.sql.tables.inputs import Input, free_name, result_column
from gpu_windows.sql.tables.results import select_arguments

#: Floats by their names in SQL.
_FLOATS = {"FLOAT": pa.float32(), "DOUBLE": pa.float64()}
#: The column of a row that has none: a table without columns has no length.
_ROW = "sql_row"


@dataclass(frozen=True)
class Branch:
    """A SELECT of a union.

    Parameters
    ----------
    table : Input
        Its rows.
    node : sqlglot.exp.Expr
        For the position of errors.
    """

    table: Input
    node: exp.Expr

    @property
    def columns(self) -> list[str]:
        """Its columns of the stream, in order."""
        return [*self.table.columns_by_name.values()]

    def type_of(self, position: int) -> pa.DataType:
        """Return the type of a column."""
        schema: pa.Schema = self.table.timed_stream.source.schema
        return schema.field(self.columns[position]).type

    def is_time(self, position: int) -> bool:
        """Whether a column is the event time."""
        return self.columns[position] == self.table.time


def unite(branches: Sequence[Branch], alias: str) -> Input:
    """Return the rows of several tables as those of one.

    Its event time is the column that is the event time of every table. Watermarks are the least of
    theirs.

    Raises
    ------
    SqlError
        If the tables differ in the number of columns, in types that no type holds, or in whether
        they have an event time.
    """
    first, *others = branches
    names, time = first.table.names.names, first.table.time
    for each in others:
        _check_alike(first, each)
    shared = [i for i in range(len(names)) if all(each.is_time(i) for each in branches)]
    if shared:
        time = names[shared[0]]
    elif time != NO_TIME:
        time = free_name(time, names)
    projected = [_project(each, branches, names, shared[:1], time) for each in branches]
    head, *rest = projected
    with errors_at(first.node):
        rows = head.call("union", *(each.on_one_line() for each in rest))
    return Input(
        alias,
        rows,
        columns={name: name for name in names},
        is_results=any(each.table.is_results for each in branches),
        processing_times=first.table.processing_times,
    )


def _check_alike(first: Branch, other: Branch) -> None:
    count, wanted = len(other.columns), len(first.columns)
    if count != wanted:
        rule = f"the SELECTs of UNION ALL have the same number of columns: the first has {wanted}"
        raise sql_error(other.node, rule, count)
    clocks, other_clocks = ([*branch.table.processing_times.values()] for branch in (first, other))
    if clocks != other_clocks:
        rule = "PROCTIME() is at the same positions in all SELECTs of UNION ALL, or in none"
        raise sql_error(other.node, rule)
    if (first.table.time == NO_TIME) != (other.table.time == NO_TIME):
        rule = (
            "the tables of UNION ALL all have an event time, or none has one: "
            "gw.stream(...).event_time(column, watermarks)"
        )
        raise sql_error(other.node, rule)
    for position, name in enumerate(first.table.names.names):
        own, wanted = other.type_of(position), first.type_of(position)
        if common_type(wanted, own) is None and not (_is_number(own) and _is_number(wanted)):
            rule = (
                f"no type holds the values of both in column {position + 1} of UNION ALL, {name}: "
                f"CAST one; it is {wanted} in the first SELECT"
            )
            raise sql_error(other.node, rule, str(own))


def _project(
    branch: Branch,
    branches: Sequence[Branch],
    names: Sequence[str],
    shared: Sequence[int],
    time: str,
) -> ApiCall:
    """Return a table's stream with the columns of the union, and its event time as ``time``.

    ``shared``: the position of the event time, if it is a column of the union.
    """
    table, columns, added = branch.table, dict[str, str](), dict[str, str]()
    used = {*table.timed_stream.source.schema.names, *names, time}
    for position, (name, column) in enumerate(zip(names, branch.columns, strict=True)):
        cast = _float_of([each.type_of(position) for each in branches], branch.type_of(position))
        is_copied = column in columns.values() or (branch.is_time(position) and not shared)
        if (is_copied or cast is not None or branch.is_time(position)) and position not in shared:
            node: exp.Expr = result_column(column)
            node = node if cast is None else exp.cast(node, cast)
            column = free_name(name, (*used, *added))
            added[column] = to_spark_sql(node)
        columns[name] = column
    with errors_at(branch.node):
        rows = table.stream.call("with_columns", **added) if added else table.stream
        if not shared and table.time != NO_TIME:
            columns[time] = table.time
        positional, keywords = select_arguments(
            {name: None if name == column else column for name, column in columns.items()}
        )
        return rows.call("project", *positional, **keywords)


def _float_of(dtypes: Sequence[pa.DataType], own: pa.DataType) -> str | None:
    """Return the type to which numbers are cast where others of the column are floats.

    As in Flink the common type of whole numbers and floats is the float, of decimals and floats
    DOUBLE. Other types have the one of `gpu_windows.column_types.widening.common_type`.
    """
    if not any(map(types.is_floating, dtypes)) or types.is_null(own):
        return None
    if any(map(types.is_decimal, dtypes)) or pa.float64() in dtypes:
        return None if own == pa.float64() or not _is_number(own) else "DOUBLE"
    return "FLOAT" if types.is_integer(own) else None


def _is_number(dtype: pa.DataType) -> bool:
    kinds = (types.is_integer, types.is_floating, types.is_decimal)
    return any(is_of(dtype) for is_of in kinds)


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
    table = pa.table({n: _values(nothing, each) for n, each in zip(names, columns, strict=True)})
    return _as_input("" if alias is None else alias.name, table, tuple(names))


def _as_input(alias: str, table: pa.Table, names: tuple[str, ...]) -> Input:
    code = f"gw.stream(pa.table({table.to_pydict()!r}))"
    begun: Stream = stream(table)
    return Input(alias, ApiCall(begun._without_time, code), columns={name: name for name in names})


def _items(row: exp.Expr) -> Sequence[exp.Expr]:
    """Return the values of a row: ``(1, 'a')``, or one value."""
    return row.expressions if isinstance(row, exp.Tuple) else [row]


def _values(nothing: Input, items: Sequence[exp.Expr]) -> pa.ChunkedArray:
    """Return the values of a column, cast to their common type."""
    arrays = [_value(nothing, each) for each in items]
    dtypes = [each.type for each in arrays]
    floats = [_FLOATS.get(_float_of(dtypes, own) or "", own) for own in dtypes]
    dtype = reduce(lambda a, b: None if a is None else common_type(a, b), floats[1:], floats[0])
    if dtype is None:
        rule = "the values of a column of VALUES have a common type: CAST them"
        raise sql_error(items[-1], rule, ", ".join(map(str, dict.fromkeys(dtypes))))
    return pa.chunked_array([each.cast(dtype) for each in arrays], dtype).combine_chunks()


def _value(nothing: Input, node: exp.Expr) -> pa.Array:
    """Return the value of an expression without columns, in an array of one."""
    with errors_at(node):
        return compute(nothing.spark_text(node), pa.table({_ROW: [0]})).combine_chunks()
