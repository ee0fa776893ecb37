"""Compares tables without regard to the order of rows, and shows what differs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from gpu_windows.errors import QueryError

#: Rows of each kind that a message shows.
_MAX_ROWS = 10


def assert_rows(
    actual: Any,
    expected: Any,
    *,
    in_order: bool = False,
    columns: Sequence[str] | None = None,
    digits: int | None = None,
) -> None:
    """Assert that two tables have the same rows, each as often; the message shows which differ.

    Parameters
    ----------
    actual, expected : pyarrow.Table, pandas.DataFrame, Spark DataFrame or list of dict
        Tables, also of two kinds. Times with a zone are compared as instants; NaN is NaN. In dicts
        that are expected, times may be text, such as "2026-05-01 12:00:00", in UTC.
    in_order : bool
        Whether the rows must be in the same order, too.
    columns : sequence of str, optional
        The columns to compare. Default: those of ``expected``, which ``actual`` must have as well,
        and no others.
    digits : int, optional
        Significant digits of floats that are compared. Default: all.

    Raises
    ------
    AssertionError
        If they differ.
    QueryError
        If one of them is not a table.

    Examples
    --------
    >>> counts = pa.table({"user": ["ann", "bob"], "n": [1, 2]})
    >>> gw.testing.assert_rows(counts, [{"user": "bob", "n": 2}, {"user": "ann", "n": 1}])
    """
    left, right = as_rows(actual), as_rows(expected)
    names = list(columns) if columns is not None else _names(right)
    problem = _column_problem(left, right, names, exact=columns is None)
    if problem:
        raise AssertionError(problem)
    if not _has_types(expected):
        right = _read_times(right, left, names)
    found = [_comparable(row, names, digits) for row in left]
    wanted = [_comparable(row, names, digits) for row in right]
    missing, extra = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
    if missing or extra:
        raise AssertionError(_describe(missing, extra, names, len(found), len(wanted)))
    if in_order and found != wanted:
        raise AssertionError(_describe_order(found, wanted))


def as_rows(table: Any) -> list[dict[str, Any]]:
    """Return the rows of a table of any kind as dicts.

    Raises
    ------
    QueryError
        If it is not a table.
    """
    if isinstance(table, pa.Table | pa.RecordBatch):
        return table.to_pylist()  # type: ignore[no-any-return]
    if hasattr(table, "toArrow"):  # of Spark
        return table.toArrow().to_pylist()  # type: ignore[no-any-return]
    if hasattr(table, "__arrow_c_stream__"):
        return pa.table(table).to_pylist()  # type: ignore[no-any-return]
    is_rows = isinstance(table, Iterable) and not isinstance(table, str | Mapping)
    rows: list[Any] = list(table) if is_rows else [None]
    if not all(isinstance(row, Mapping) for row in rows):
        rule = "rows are an Arrow table, a DataFrame of Spark or pandas, or a list of dicts"
        raise QueryError(rule, value=type(table).__name__)
    return [dict(row) for row in rows]


def _has_types(table: object) -> bool:
    return hasattr(table, "toArrow") or hasattr(table, "__arrow_c_stream__")


def _names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _column_problem(
    actual: Sequence[Mapping[str, Any]],
    expected: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    *,
    exact: bool,
) -> str:
    if not actual or not expected:
        return ""
    has, wants = _names(actual), _names(expected)
    missing = [name for name in names if name not in has or name not in wants]
    extra = [name for name in has if name not in names] if exact else []
    parts = []
    if missing:
        parts.append(f"no column {', '.join(missing)}")
    if extra:
        parts.append(f"columns that are not expected: {', '.join(extra)} (or give columns=)")
    return "; ".join(parts) and f"{'; '.join(parts)}: there are {', '.join(has)}"


def _read_times(
    rows: list[dict[str, Any]], others: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> list[dict[str, Any]]:
    """Return rows with their text as times in the columns in which other rows have times."""
    times = {name: _first_time(others, name) for name in names}
    like = {name: time for name, time in times.items() if time is not None}
    return [
        {
            name: _read_time(value, like[name]) if name in like else value
            for name, value in row.items()
        }
        for row in rows
    ]


def _first_time(rows: Sequence[Mapping[str, Any]], name: str) -> datetime | None:
    return next((row[name] for row in rows if isinstance(row.get(name), datetime)), None)


def _read_time(value: object, like: datetime) -> object:
    """Return a text as a time, with a zone if another time has one; other values as they are."""
    if not isinstance(value, str):
        return value
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return value  # is compared as text, and differs
    return time.replace(tzinfo=UTC) if like.tzinfo is not None and time.tzinfo is None else time


def _comparable(row: Mapping[str, Any], names: Sequence[str], digits: int | None) -> Hashable:
    return tuple(_value(row.get(name), digits) for name in names)


def _value(value: Any, digits: int | None) -> Hashable:
    """Return a value that is equal to equal ones: times as instants, NaN as one value."""
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return value if digits is None else float(f"{value:.{digits}g}")
    if isinstance(value, list | tuple):
        return tuple(_value(each, digits) for each in value)
    if isinstance(value, Mapping):
        return tuple((name, _value(each, digits)) for name, each in value.items())
    return value if isinstance(value, Hashable) else repr(value)


def _describe(
    missing: Counter[Hashable],
    extra: Counter[Hashable],
    names: Sequence[str],
    found: int,
    wanted: int,
) -> str:
    lines = [f"rows differ: {found} rows, {wanted} expected ({', '.join(names)})"]
    for sign, rows in (("-", missing), ("+", extra)):
        every = sorted(rows.elements(), key=repr)
        lines += [f"  {sign} {_show(row)}" for row in every[:_MAX_ROWS]]
        if len(every) > _MAX_ROWS:
            lines.append(f"  {sign} ... {len(every) - _MAX_ROWS} more")
    return "\n".join([*lines, "  (- expected, + found)"])


def _describe_order(found: Sequence[Hashable], wanted: Sequence[Hashable]) -> str:
    at = next(i for i, (a, b) in enumerate(zip(found, wanted, strict=True)) if a != b)
    rows = f"  - {_show(wanted[at])}\n  + {_show(found[at])}"
    return f"the rows are the same, but not their order: row {at} differs\n{rows}"


def _show(row: Any) -> str:
    return ", ".join(str(value) if hasattr(value, "isoformat") else repr(value) for value in row)
