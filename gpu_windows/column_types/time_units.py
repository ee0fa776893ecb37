"""Times and durations in microseconds: all code that needs them converts here, and nowhere else.

Nanoseconds are converted exactly, never rounded. Integers are taken for microseconds, with a
warning if they look like another unit.
"""

from __future__ import annotations

import logging
from functools import cache
from keyword import iskeyword
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from gpu_windows.errors import PrecisionError

logger = logging.getLogger(__name__)

#: Seconds since 1970 from 2001 to 2103.
_SECONDS = 1_000_000_000, 4_200_000_000
#: From this tick on, in 1970, times are no seconds or milliseconds of these years.
FIRST_CERTAIN = _SECONDS[1] * 1_000
#: Units that are longer than a microsecond: how many of them a second has.
_UNITS = {"s": ("seconds", 1), "ms": ("milliseconds", 1_000)}
#: Nanoseconds of a microsecond.
_NANOSECONDS = 1_000


def is_nanoseconds(dtype: pa.DataType) -> bool:
    """Whether values are times or durations that may be finer than a microsecond."""
    timed = types.is_timestamp(dtype) or types.is_duration(dtype) or types.is_time64(dtype)
    return bool(timed and dtype.unit == "ns")


def to_microseconds(
    column: pa.Array | pa.ChunkedArray, name: str, use: str, *, of: str | None = None
) -> pa.Array | pa.ChunkedArray:
    """Convert times or durations of nanoseconds to microseconds; return other columns unchanged.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray
    name : str
        Display name of the column.
    use : str
        What needs microseconds, for the error message, such as "an event time".
    of : str, optional
        The struct column that it is a field of.

    Raises
    ------
    PrecisionError
        If a value that is not null is not a whole number of microseconds.

    Examples
    --------
    >>> import pyarrow as pa
    >>> times = pa.array([1_000, None], pa.timestamp("ns", "UTC"))
    >>> to_microseconds(times, "ts", "an event time").cast("int64").to_pylist()
    [1, None]
    """
    dtype = column.type
    if not is_nanoseconds(dtype):
        return column
    try:
        return column.cast(microsecond_type(dtype))  # Arrow's check looks at no value under a null
    except pa.ArrowInvalid:
        raise nanoseconds_error(_first_finer(column), dtype, name, use, of=of) from None


def python_values(column: pa.Array | pa.ChunkedArray, name: str) -> list[Any]:
    """Convert a column to a list of Python values.

    Raises
    ------
    PrecisionError
        If one is a time of day, alone or in a struct or list, finer than a microsecond: the
        resolution of `datetime.time`.
    """
    _check_times_of_day(column, name)
    values: list[Any] = column.to_pylist()
    return values


def microsecond_type(dtype: pa.DataType) -> pa.DataType:
    """Return the microsecond type of a type of times or durations."""
    if types.is_timestamp(dtype):
        return pa.timestamp("us", dtype.tz)
    return pa.duration("us") if types.is_duration(dtype) else pa.time64("us")


def nanoseconds_error(
    nanoseconds: int, dtype: pa.DataType, name: str, use: str, *, of: str | None = None
) -> PrecisionError:
    """Return the error for a value finer than a microsecond, with the way to round it.

    Parameters
    ----------
    nanoseconds : int
        The value; since 1970 for an instant.
    dtype : pyarrow.DataType
    name, use, of
        See `to_microseconds`.
    """
    rule = (
        f"{use} must be whole microseconds, and finer values are not rounded silently: "
        f"{_remedy(name, dtype, of)}"
    )
    column = name if of is None else f"{of}.{name}"
    return PrecisionError(rule, value=_format_value(nanoseconds, dtype), column=column)


def _remedy(name: str, dtype: pa.DataType, of: str | None) -> str:
    """Return the advice how to round a column."""
    if types.is_time64(dtype):
        return "cast it first, with pyarrow.compute.floor_temporal"
    to = "INTERVAL DAY TO SECOND" if types.is_duration(dtype) else "TIMESTAMP"
    if types.is_timestamp(dtype) and dtype.tz is None:
        to = "TIMESTAMP_NTZ"
    path = ".".join(f"`{part.replace('`', '``')}`" for part in (of, name) if part is not None)
    text = f"CAST({path} AS {to})"
    plain = name.isidentifier() and not iskeyword(name)
    argument = f'{name}="{text}"' if plain else f"**{{{name!r}: {text!r}}}"
    return f"round it first, with .with_columns({argument})"


def _check_times_of_day(column: pa.Array | pa.ChunkedArray, name: str) -> None:
    dtype = column.type
    if types.is_time64(dtype):
        to_microseconds(column, name, "a time of day in Python")
    elif types.is_struct(dtype):
        for place, field in enumerate(dtype):
            _check_times_of_day(pc.struct_field(column, indices=[place]), f"{name}.{field.name}")
    elif types.is_list(dtype) or types.is_large_list(dtype) or types.is_fixed_size_list(dtype):
        _check_times_of_day(pc.list_flatten(column), name)
    elif types.is_map(dtype):
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            entries = pc.list_flatten(chunk.cast(_as_list(dtype)))
            _check_times_of_day(entries, name)


def _as_list(dtype: pa.MapType) -> pa.DataType:
    """Return the type of the entries of a map, as a list of them."""
    return pa.list_(pa.struct([("key", dtype.key_type), ("value", dtype.item_type)]))


def _first_finer(column: pa.Array | pa.ChunkedArray) -> int:
    """Return the first value that is finer than a microsecond."""
    values = column.drop_null().cast(pa.int64())
    whole = pc.multiply(pc.divide(values, _NANOSECONDS), _NANOSECONDS)
    found: int = values.filter(pc.not_equal(values, whole))[0].as_py()
    return found


def _format_value(nanoseconds: int, dtype: pa.DataType) -> str:
    if not types.is_timestamp(dtype):
        return f"{nanoseconds} ns"
    text: str = pa.scalar(nanoseconds, pa.timestamp("ns")).cast(pa.string()).as_py()
    return text if dtype.tz is None else f"{text}Z"


def warn_of_unit(times: pa.ChunkedArray, name: str) -> None:
    """Log a warning if all int64 of an event time look like seconds or milliseconds since 1970.

    As microseconds, which they are, they would all be in the first 70 minutes, or from 12 to 49
    days, of 1970. Nothing is converted. Integers of other types, such as dictionaries of them, are
    not looked at.
    """
    if not types.is_int64(times.type):
        return
    bounds = pc.min_max(times).as_py()
    unit = None if bounds["min"] is None else other_unit(bounds["min"], bounds["max"])
    if unit is not None:
        logger.warning(
            "event times that are integers are microseconds, but all of column %r look like %s "
            "since 1970: convert them by cast(pa.timestamp(%r, 'UTC')), or in pandas by "
            "to_datetime(column, unit=%r, utc=True)",
            name,
            _UNITS[unit][0],
            unit,
            unit,
        )


def other_unit(min_time: int, max_time: int) -> str | None:
    """Return the unit, ``s`` or ``ms``, that times look like; None for microseconds."""
    for unit, (_, per_second) in _UNITS.items():
        if _SECONDS[0] * per_second <= min_time and max_time <= _SECONDS[1] * per_second:
            return unit
    return None


@cache
def warn_of_timer(owner: str, unit: str) -> None:
    """Log, once, that a function's timers look like seconds or milliseconds since 1970."""
    logger.warning(
        "timers are in microseconds, but those of %s look like %s since 1970: context.after('30 "
        "minutes') is a time, and so is a datetime",
        owner,
        _UNITS[unit][0],
    )
