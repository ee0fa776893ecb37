"""Rows of ours and Flink's, as multisets of values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

#: What top-N adds to tell changes.
_CHANGE = "change"


def difference(table: pa.Table, flink: Mapping[str, Any], differs: str = "") -> str | None:
    """Return how a table differs from Flink's rows; None if it does not.

    Parameters
    ----------
    table : pa.Table
    flink : mapping
        ``columns``, ``types``, ``rows``.
    differs : str
        ``average``: integers of Flink are averages, cut. ``ordered a b``: rows are in the order
        of these columns.
    """
    rows = [list(row.values()) for row in _rows(table)]
    if _CHANGE in table.column_names and _CHANGE not in flink["columns"]:
        table = present_rows(table, _CHANGE, ()).drop_columns(_CHANGE)
        rows = [list(row.values()) for row in _rows(table)]
    names = [n for n in table.column_names if n != _CHANGE or n in flink["columns"]]
    if names != flink["columns"]:
        return f"columns {names}, Flink: {flink['columns']}"
    read = [_reader(kind, differs) for kind in flink["types"]]
    own = [_Row([f(v) for f, v in zip(read, row, strict=True)]) for row in rows]
    right = [_Row([f(v) for f, v in zip(read, row, strict=True)]) for row in flink["rows"]]
    if differs.startswith("ordered"):
        places = [flink["columns"].index(name) for name in differs.split()[1:]]
        if _sequence(own, places) != _sequence(right, places):
            return "the rows are in another order"
    surplus, missing = _without(own, right), _without(right, own)
    if not surplus and not missing:
        return None
    counts = f"{len(own)} rows, Flink: {len(right)}"
    return f"{counts}; not Flink's: {surplus[:2]}; missing: {missing[:2]}"


def present_rows(table: pa.Table, change: str, keys: Sequence[str]) -> pa.Table:
    """Return the rows that are there after changes, with ``insert`` as their change.

    ``keys``: columns that name the row that is replaced; a deleted row is an equal one.
    """
    place = table.column_names.index(change)
    names = [n for n in table.column_names if n in keys]
    found = [table.column_names.index(name) for name in names]
    present: list[list[Any]] = []
    for each in _rows(table):
        row = list(each.values())
        kind, row[place] = row[place], "insert"
        if kind == "delete":
            present.remove(row)
            continue
        if kind == "update_after":
            key = [row[index] for index in found]
            present.remove(next(r for r in present if [r[index] for index in found] == key))
        present.append(row)
    columns = zip(*present, strict=True) if present else [()] * table.num_columns
    arrays = [pa.array(c, f.type) for c, f in zip(columns, table.schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=table.schema)


def _sequence(rows: Sequence[_Row], places: Sequence[int]) -> list[Any]:
    return [[row.values[place] for place in places] for row in rows]


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    names = [str(place) for place in range(table.num_columns)]  # equal names are allowed
    rows: list[dict[str, Any]] = table.rename_columns(names).to_pylist(maps_as_pydicts=None)
    return rows


class _Row:
    """Values of a row; equal ones may differ in the last bits of floats."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values
        self.exact = repr([v for v in values if not isinstance(v, float)])

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, _Row)
        return self.exact == other.exact and _close(self.values, other.values)

    def __repr__(self) -> str:
        return repr(self.values)


def _close(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-6, abs_tol=1e-9) or repr(left) == repr(right)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_close, left, right))
    return bool(left == right)


def _without(rows: Sequence[_Row], others: Sequence[_Row]) -> list[_Row]:
    by_exact: dict[str, list[_Row]] = {}
    for row in others:
        by_exact.setdefault(row.exact, []).append(row)
    left = []
    for row in rows:
        same = by_exact.get(row.exact, [])
        if row in same:
            same.remove(row)
        else:
            left.append(row)
    return left


def _reader(kind: str, differs: str) -> Any:
    """Return what makes values of a type of Flink's comparable, of both sides."""
    if re.match("TIMESTAMP", kind):
        return _time
    if re.match("TINYINT|SMALLINT|INT|BIGINT", kind):
        cut = (Decimal, float) if differs == "average" else Decimal
        return lambda v: int(v) if isinstance(v, cut) and (differs or v % 1 == 0) else _plain(v)
    if re.match("FLOAT|DOUBLE", kind):
        return lambda v: None if v is None else float(v)
    if re.match("DECIMAL", kind):
        return lambda v: None if v is None else Decimal(str(v)).normalize()
    return _plain


def _time(value: Any) -> Any:
    """Return a time in milliseconds: windows end at the last microsecond here."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value.replace("Z", "+00:00"))
    if not isinstance(value, datetime):
        return value
    at = value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC)
    return at.replace(microsecond=at.microsecond // 1000 * 1000).isoformat()


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return f"PT{value.total_seconds():g}S"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return [_plain(each) for each in value.values()]
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
