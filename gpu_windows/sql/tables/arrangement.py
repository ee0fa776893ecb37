"""Results that are distinct, sorted and limited, of a bounded input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from gpu_windows.expressions.sql_text import errors_at, sql_error
from gpu_windows.sql.api_call import ApiCall
from gpu_windows.sql.syntax.arrangement import Clauses, Sorting
from gpu_windows.sql.tables.inputs import result_column
from gpu_windows.sql.tables.results import Results

_ON_STREAM: Mapping[type[exp.Expr], str] = {
    exp.Order: "results of a stream never end, and cannot be sorted: rows come in the order of "
    "their event time with ORDER BY this time of a table, results of windows as windows end",
    exp.Limit: "results of a stream never end: LIMIT is covered over batches; use ROW_NUMBER",
    exp.Fetch: "results of a stream never end: FETCH is covered over batches; use ROW_NUMBER",
    exp.Offset: "results of a stream never end: OFFSET is covered over batches",
}
_NOT_DISTINCT = (
    "SELECT DISTINCT of a stream would keep all its rows: GROUP BY the columns, in windows, or "
    "ROW_NUMBER() OVER (PARTITION BY them ORDER BY the time) and WHERE number = 1"
)


def arrange(results: Results, clauses: Clauses) -> Results:
    """Return results after DISTINCT, ORDER BY, LIMIT and OFFSET.

    Raises
    ------
    SqlError
        If the input is a stream, or ORDER BY names what is not a result.
    """
    if results.is_streaming:
        raise sql_error(clauses.node, _ON_STREAM.get(type(clauses.node), _NOT_DISTINCT))
    outputs = results.outputs
    names = tuple(name for name in results.names if name not in clauses.added)
    with errors_at(clauses.node):
        if clauses.distinct:
            outputs = outputs.call("distinct")
        if clauses.order:
            outputs = _sort(outputs, clauses.order, results.names, len(names))
        if clauses.limit is not None or clauses.offset:
            offset = {"offset": clauses.offset} if clauses.offset else {}
            outputs = outputs.call("limit", clauses.limit, **offset)
    arranged = replace(results, outputs=outputs, window=None, delays={}, before=None, steps=())
    if not clauses.added:
        return arranged
    with errors_at(clauses.node):
        return arranged.select({name: result_column(name) for name in names})


def _sort(
    outputs: ApiCall, order: Sequence[Sorting], names: tuple[str, ...], count: int
) -> ApiCall:
    keys: dict[str, tuple[bool, bool]] = {}
    for each in order:
        down, first = (bool(each.node.args.get(name)) for name in ("desc", "nulls_first"))
        keys.setdefault(_column(each, names, count), (down, first))
    descending, nulls_first = ([each[i] for each in keys.values()] for i in (0, 1))
    more = {"descending": descending} if any(descending) else {}
    if nulls_first != [not down for down in descending]:
        more["nulls_first"] = nulls_first
    return outputs.call("order_by", *keys, **more)


def _column(sorting: Sorting, names: tuple[str, ...], count: int) -> str:
    """Return the result that a part of ORDER BY names. ``count``: of those of SELECT."""
    column = sorting.column
    if isinstance(column, int):
        if not 1 <= column <= count:
            raise sql_error(sorting.node, f"positions in ORDER BY are from 1 to {count}", column)
        return names[column - 1]
    found = [name for name in names if name.lower() == column.lower()]
    if not found:
        rule = f"there is no such result; there are {', '.join(names[:count])}"
        raise sql_error(sorting.node, rule, column)
    return found[0]
