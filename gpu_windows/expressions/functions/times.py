"""Functions of times; days and hours of instants are in UTC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from gpu_windows.expressions.arrays import find_missing, whole_numbers
from gpu_windows.expressions.functions.call import ArrowFunction, Call
from gpu_windows.expressions.functions.time_formats import (
    days_of_months,
    format_times,
    read_times,
)
from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.expressions.types import INSTANT

_CLOCK, _LONG = pa.timestamp("us"), pa.int64()
_SECOND = 1_000_000
_YEAR_1, _YEAR_10000 = -62_135_596_800_000_000, 253_402_300_800_000_000
_TICKS = {"MILLISECOND": 1_000, "SECOND": _SECOND, "MINUTE": 60 * _SECOND, "HOUR": 3_600 * _SECOND,
          "DAY": 86_400 * _SECOND, "WEEK": 604_800 * _SECOND}  # fmt: skip
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def _wall(of: pa.Array) -> pa.Array:
    """Return times as readings of a clock in UTC, of the years 1 to 9999."""
    if types.is_date32(of.type):
        wall = of.cast(_CLOCK)
    else:
        wall = of if of.type.tz is None else of.cast(INSTANT).cast(_LONG).cast(_CLOCK)
    bounds = pc.min_max(wall.cast(_LONG))
    first, last = bounds["min"].as_py(), bounds["max"].as_py()
    if first is not None and (first < _YEAR_1 or last >= _YEAR_10000):
        raise pa.ArrowInvalid("a time is not in the years 1 to 9999")
    return wall


def _like(wall: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Return readings of a clock as times of a type; of a DATE they become instants."""
    return wall if dtype == _CLOCK else wall.cast(_LONG).cast(INSTANT)


def _ticks(of: pa.Array) -> pa.Array:
    if types.is_date32(of.type):
        return of.cast(_CLOCK).cast(_LONG)
    return of.cast(pa.timestamp("us", of.type.tz)).cast(_LONG)


def _field(plain: Callable[[pa.Array], pa.Array]) -> ArrowFunction:
    return ArrowFunction(("time",), lambda call: plain(_wall(call.arrays[0])).cast(pa.int32()))


def _day_of_week(of: pa.Array) -> pa.Array:
    return pc.day_of_week(of, count_from_zero=False, week_start=7)


def _truncate(call: Call) -> pa.Array:
    unit, of = call.literal(0).upper(), call.arrays[1]
    wall = _wall(of)
    if unit == "MICROSECOND":
        return _like(wall, of.type)
    if unit not in (*_TICKS, *_MONTHS):
        raise sql_error(call.node, "over Arrow tables DATE_TRUNC takes YEAR to MICROSECOND", unit)
    return _like(pc.floor_temporal(wall, unit=unit.lower()), of.type)


def _unix_seconds(call: Call) -> pa.Array:
    """Return seconds since 1970, rounded down."""
    ticks = _ticks(call.arrays[0])
    return pa.array(whole_numbers(ticks) // _SECOND, _LONG, mask=find_missing(ticks))


def _from_number(factor: int) -> Callable[[Call], pa.Array]:
    def compute(call: Call) -> pa.Array:
        return pc.multiply_checked(call.arrays[0].cast(_LONG), pa.scalar(factor)).cast(INSTANT)

    return compute


def _difference(call: Call) -> pa.Array:
    """Return whole units from one time to another, rounded towards zero."""
    unit, start, end = call.literal(0), _ticks(call.arrays[1]), _ticks(call.arrays[2])
    if unit not in _TICKS:
        raise sql_error(
            call.node, "over Arrow tables TIMESTAMPDIFF takes WEEK to MILLISECOND", unit
        )
    return pc.divide(pc.subtract_checked(end, start), pa.scalar(_TICKS[unit]))


def _add(call: Call) -> pa.Array:
    unit, count, of = call.literal(0), call.arrays[1], call.arrays[2]
    if unit in _MONTHS:
        moved = _add_months(_wall(of), pc.multiply_checked(count.cast(_LONG), _MONTHS[unit]))
        return _like(moved, of.type)
    if unit not in _TICKS:
        raise sql_error(call.node, "over Arrow tables TIMESTAMPADD takes YEAR to MILLISECOND", unit)
    ticks = pc.multiply_checked(count.cast(_LONG), pa.scalar(_TICKS[unit]))
    return _like(pc.add_checked(_ticks(of), ticks).cast(_CLOCK), of.type)


def _add_months(wall: pa.Array, months: pa.Array) -> pa.Array:
    """Return times moved by months, to the last day of a month that is too short."""
    times = whole_numbers(wall).astype("M8[us]")
    first = times.astype("M8[M]")
    days = (times.astype("M8[D]") - first.astype("M8[D]")).astype(np.int64)
    moved = first + whole_numbers(months)
    day = moved.astype("M8[D]") + np.minimum(days, days_of_months(moved) - 1)
    result = day.astype("M8[us]") + (times - times.astype("M8[D]"))
    return pa.array(result.astype(np.int64), _LONG, mask=find_missing(wall, months)).cast(_CLOCK)


def _add_months_to_date(call: Call) -> pa.Array:
    moved = _add_months(_wall(call.arrays[0]), call.arrays[1].cast(_LONG))
    return moved.cast(pa.date32())


def _days(of: pa.Array) -> pa.Array:
    day = pc.floor_temporal(_wall(of), unit="day").cast(pa.date32())
    return day.cast(pa.int32())


def _date_add(call: Call) -> pa.Array:
    return pc.add_checked(_days(call.arrays[0]), call.arrays[1].cast(pa.int32())).cast(pa.date32())


def _date_difference(call: Call) -> pa.Array:
    return pc.subtract_checked(_days(call.arrays[0]), _days(call.arrays[1]))


def _format(call: Call) -> pa.Array:
    return format_times(call.node, _wall(call.arrays[0]), call.literal(1))


def _read(call: Call) -> pa.Array:
    return read_times(call.node, call.arrays[0], call.literal(1)).cast(_LONG).cast(INSTANT)


def _from_unixtime(call: Call) -> pa.Array:
    seconds: Any = _from_number(_SECOND)(call)
    pattern = call.literal(1, "yyyy-MM-dd HH:mm:ss")
    return format_times(call.node, _wall(seconds), pattern)


_TIME = ("time",)

#: The functions by Spark's names.
TIMES: Mapping[str, ArrowFunction] = {
    "YEAR": _field(pc.year),
    "YEAROFWEEK": _field(pc.iso_year),
    "QUARTER": _field(pc.quarter),
    "MONTH": _field(pc.month),
    "WEEKOFYEAR": _field(pc.iso_week),
    "DAY": _field(pc.day),
    "DAYOFMONTH": _field(pc.day),
    "DAYOFYEAR": _field(pc.day_of_year),
    "DAYOFWEEK": _field(_day_of_week),
    "WEEKDAY": _field(pc.day_of_week),
    "HOUR": _field(pc.hour),
    "MINUTE": _field(pc.minute),
    "SECOND": _field(pc.second),
    "DATE_TRUNC": ArrowFunction(("text", "time"), _truncate),
    "UNIX_DATE": ArrowFunction(_TIME, lambda call: _days(call.arrays[0])),
    "UNIX_SECONDS": ArrowFunction(_TIME, _unix_seconds),
    "UNIX_MICROS": ArrowFunction(_TIME, lambda call: _ticks(call.arrays[0])),
    "TIMESTAMP_SECONDS": ArrowFunction(("integer",), _from_number(_SECOND)),
    "TIMESTAMP_MILLIS": ArrowFunction(("integer",), _from_number(1_000)),
    "TIMESTAMP_MICROS": ArrowFunction(("integer",), _from_number(1)),
    "TIMESTAMPDIFF": ArrowFunction(("text", "time", "time"), _difference),
    "TIMESTAMPADD": ArrowFunction(("text", "integer", "time"), _add),
    "DATE_ADD": ArrowFunction(("time", "integer"), _date_add),
    "ADD_MONTHS": ArrowFunction(("time", "integer"), _add_months_to_date),
    "DATEDIFF": ArrowFunction(("time", "time"), _date_difference),
    "DATE_FORMAT": ArrowFunction(("time", "text"), _format),
    "TRY_TO_TIMESTAMP": ArrowFunction(("text", "text"), _read),
    "FROM_UNIXTIME": ArrowFunction(("integer", "text"), _from_unixtime, 1),
}
