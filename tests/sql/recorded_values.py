"""Values that Flink 2.3 gave for expressions over edge values, recorded by `tests.oracle`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyarrow import types

from tests.oracle.expressions.tables import TABLES

FILE = Path(__file__).parent / "recorded_values.json"
_EPOCH = datetime(1970, 1, 1)
_TYPES = {
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DECIMAL(10, 2)": pa.decimal128(10, 2),
    "DATE": pa.date32(),
    "TIMESTAMP(3)": pa.timestamp("us"),
    "TIMESTAMP_LTZ(3)": pa.timestamp("us", "UTC"),
    "ARRAY<INT>": pa.list_(pa.int32()),
    "ARRAY<STRING>": pa.list_(pa.string()),
    "MAP<STRING, INT>": pa.map_(pa.string(), pa.int32()),
}


@dataclass(frozen=True, eq=False)
class Recorded:
    """What Flink gave for an expression.

    Parameters
    ----------
    table, zone, expression : str
    dtype : str
        Flink's type of the values.
    values : tuple
        For each row: a string, None, a list or dictionary of strings, or `Failure`.
    """

    table: str
    zone: str
    expression: str
    dtype: str
    values: tuple[Any, ...]

    @property
    def valid_rows(self) -> tuple[int, ...]:
        """Rows that have a value in Flink."""
        return tuple(i for i, each in enumerate(self.values) if not isinstance(each, Failure))


@dataclass(frozen=True)
class Failure:
    """An error of a row in Flink."""

    message: str


@cache
def recorded(table: str, zone: str = "UTC") -> tuple[Recorded, ...]:
    """Return what was recorded for a table in a zone; what Flink refuses is left out."""
    answers = json.loads(FILE.read_text())[zone][table]
    return tuple(
        Recorded(table, zone, expression, each["type"], tuple(map(_value, each["values"])))
        for expression, each in answers.items()
        if "refused" not in each and each["type"] is not None
    )


def _value(value: Any) -> Any:
    is_failure = isinstance(value, dict) and set(value) == {"error"}
    return Failure(value["error"]) if is_failure else value


def rows(table: str) -> pa.Table:
    """Return the rows of a table; ``i`` numbers them, ``at`` is their event time."""
    content = TABLES[table]
    count = len(content.rows)
    columns = {"i": pa.array(range(count), pa.int32())}
    columns["at"] = pa.array(range(count), pa.timestamp("us", "UTC"))
    for index, (name, dtype) in enumerate(content.columns.items()):
        columns[name] = _array([row[index] for row in content.rows], dtype)
    return pa.table(columns)


def _array(values: Sequence[Any], dtype: str) -> pa.Array:
    to = _TYPES[dtype]
    if types.is_floating(to):
        return pa.array([None if each is None else float(each) for each in values], to)
    if types.is_decimal(to):
        return pa.array([None if each is None else Decimal(each) for each in values], to)
    if types.is_integer(to):
        return pa.array([None if each is None else int(each) for each in values], to)
    if types.is_date32(to):
        return pa.array([None if each is None else date.fromisoformat(each) for each in values], to)
    if types.is_timestamp(to):
        return pa.array(
            [None if each is None else _ticks(each) for each in values], pa.int64()
        ).cast(to)
    if types.is_map(to):
        return pa.array([None if each is None else [*each.items()] for each in values], to)
    return pa.array(values, to)


_TIME = re.compile(r"([+-]?\d+)-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?Z?")


def _ticks(text: str) -> int:
    """Return the microseconds since 1970 of a time as Java prints it, of any year."""
    match = _TIME.fullmatch(text)
    assert match is not None, text
    year, month, day, hour, minute = (int(match[at]) for at in range(1, 6))
    periods, within = divmod(year - 1, 400)  # the calendar repeats after 400 years
    moved = datetime(within + 1, month, day, hour, minute, int(match[6] or 0))
    ticks = (moved - _EPOCH) // timedelta(microseconds=1) + int((match[7] or "0").ljust(6, "0")[:6])
    return ticks + periods * 146_097 * 86_400_000_000


def differences(
    ours: pa.Array | pa.ChunkedArray, recording: Recorded, rows: Sequence[int]
) -> Iterator[tuple[int, Any, Any]]:
    """Yield row, value and Flink's value where they differ."""
    for position, row in enumerate(rows):
        value = ours[position]
        if not is_same(value, recording.values[row], recording.dtype, recording.zone):
            yield row, _shown(value), recording.values[row]


def _shown(value: pa.Scalar) -> str:
    try:
        return str(value)
    except (OverflowError, ValueError):  # a year that Python has no date for
        return str(value.cast(pa.int32() if types.is_date32(value.type) else pa.int64()))


def is_same(ours: pa.Scalar, flinks: Any, dtype: str, zone: str) -> bool:
    """Return whether a value is the one that Flink gave."""
    if not ours.is_valid or flinks is None:
        return not ours.is_valid and flinks is None
    kind = dtype.partition("(")[0].partition("<")[0].strip()
    if kind in ("STRING", "CHAR", "VARCHAR"):
        return bool(types.is_string(ours.type) and ours.as_py() == flinks)
    if kind in ("BYTES", "BINARY", "VARBINARY"):
        return bool(types.is_binary(ours.type) and ours.as_py().hex() == flinks)
    if kind == "BOOLEAN":
        return bool(types.is_boolean(ours.type) and str(ours.as_py()).lower() == flinks)
    if kind == "ARRAY":
        return _is_same_list(ours, flinks, dtype, zone)
    if kind == "MAP":
        return _is_same_map(ours, flinks, dtype, zone)
    if kind == "ROW":
        return _is_same_row(ours, flinks, dtype, zone)
    if kind in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return _is_same_time(ours, flinks, kind, zone)
    if kind == "DATE":
        return (
            types.is_date32(ours.type) and _day(ours) == _ticks(f"{flinks}T00:00") // 86_400_000_000
        )
    return _is_same_number(ours, flinks, kind)


def _day(ours: pa.Scalar) -> int:
    days: int = ours.cast(pa.int32()).as_py()
    return days


def _is_same_number(ours: pa.Scalar, flinks: str, kind: str) -> bool:
    value = ours.as_py()
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return False
    if kind in ("FLOAT", "DOUBLE") or isinstance(value, float):
        return is_close(float(value), float(flinks), single=kind == "FLOAT")
    return Decimal(value) == Decimal(flinks)


#: Units in the last place that results of exponentials and trigonometry may differ.
ULPS = 2


def is_close(ours: float, flinks: float, *, single: bool = False) -> bool:
    """Return whether floats are equal, but for `ULPS` units in the last place."""
    if math.isnan(ours) or math.isnan(flinks):
        return math.isnan(ours) and math.isnan(flinks)
    if math.isinf(ours) or math.isinf(flinks) or (not single and ours == flinks):
        return ours == flinks
    unit = abs(flinks) * 2.0**-23 if single else math.ulp(flinks)
    return abs(ours - flinks) <= ULPS * unit


def _is_same_time(ours: pa.Scalar, flinks: str, kind: str, zone: str) -> bool:
    if not types.is_timestamp(ours.type):
        return False
    value, wanted = ours.cast(pa.timestamp("us", ours.type.tz)).value, _ticks(flinks)
    if (ours.type.tz is None) == (kind == "TIMESTAMP"):
        return bool(value == wanted)
    if kind == "TIMESTAMP_LTZ":  # a wall clock where Flink has an instant
        return bool(value == wanted) and zone == "UTC"
    return bool(value == instant_of(wanted, zone))


def instant_of(ticks: int, zone: str) -> int:
    """Return the instant of a wall clock: the first of two, and after a gap the time moved on."""
    if zone == "UTC":
        return ticks
    wall = _EPOCH + timedelta(microseconds=ticks)
    local = wall.replace(tzinfo=ZoneInfo(zone))
    return (local - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _is_same_list(ours: pa.Scalar, flinks: Any, dtype: str, zone: str) -> bool:
    if not types.is_list(ours.type) or len(ours) != len(flinks):
        return False
    element = dtype.removeprefix("ARRAY<").removesuffix(">")
    return all(is_same(a, b, element, zone) for a, b in zip(ours, flinks, strict=True))


def _is_same_map(ours: pa.Scalar, flinks: Any, dtype: str, zone: str) -> bool:
    if not types.is_map(ours.type) or len(ours) != len(flinks):
        return False
    value = dtype.partition(", ")[2].removesuffix(">")
    pairs = [(each["key"].as_py(), each["value"]) for each in ours.values]
    return all(key in flinks and is_same(each, flinks[key], value, zone) for key, each in pairs)


_FIELD = re.compile(r"`([^`]+)` ([A-Z]+)")


def _is_same_row(ours: pa.Scalar, flinks: Any, dtype: str, zone: str) -> bool:
    fields = _FIELD.findall(dtype)
    if not types.is_struct(ours.type) or [name for name, _ in fields] != [*ours.keys()]:
        return False
    triples = zip(ours.values(), flinks, fields, strict=True)
    return all(is_same(value, text, of, zone) for value, text, (_, of) in triples)
