"""Times and durations of nanoseconds in microseconds: what is none is refused, and never rounded.

The one place where precision may be lost: whoever needs microseconds asks here.
"""

from __future__ import annotations

from keyword import iskeyword
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from gpu_windows.errors import PrecisionError

_NANOSECONDS = 1_000


def is_of_nanoseconds(dtype: pa.DataType) -> bool:
    """Whether values are times or durations that may be finer than a microsecond."""
    timed = types.is_timestamp(dtype) or types.is_duration(dtype) or types.is_time64(dtype)
    return bool(timed and dtype.unit == "ns")


def in_microseconds(
    column: pa.Array | pa.ChunkedArray, name: str, use: str, *, of: str | None = None
) -> pa.Array | pa.ChunkedArray:
    """Return times or durations of nanoseconds in microseconds, others as they are.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray
    name : str
        What the user calls the column.
    use : str
        What needs microseconds, in words ("an event time").
    of : str, optional
        The column that it is a field of.

    Raises
    ------
    PrecisionError
        If a value that is not null is no whole microsecond.

    Examples
    --------
    >>> import pyarrow as pa
    >>> times = pa.array([1_000, None], pa.timestamp("ns", "UTC"))
    >>> in_microseconds(times, "ts", "an event time").cast("int64").to_pylist()
    [1, None]
    """
    dtype = column.type
    if not is_of_nanoseconds(dtype):
        return column
    try:
        return column.cast(microseconds_of(dtype))  # Arrow's check looks at no value under a null
    except pa.ArrowInvalid:
        raise refuse_nanoseconds(_first_finer(column), dtype, name, use, of=of) from None


def python_values(column: pa.Array | pa.ChunkedArray, name: str) -> list[Any]:
    """Return the values of a column as Python's own.

    Raises
    ------
    PrecisionError
        If one is a time of day, alone or in a struct or list, that is no whole microsecond:
        `datetime.time` has none finer.
    """
    _check_times_of_day(column, name)
    values: list[Any] = column.to_pylist()
    return values


def microseconds_of(dtype: pa.DataType) -> pa.DataType:
    """Return the type of the same times or durations in microseconds."""
    if types.is_timestamp(dtype):
        return pa.timestamp("us", dtype.tz)
    return pa.duration("us") if types.is_duration(dtype) else pa.time64("us")


def refuse_nanoseconds(
    nanoseconds: int, dtype: pa.DataType, name: str, use: str, *, of: str | None = None
) -> PrecisionError:
    """Return what is said of a value that is no whole microsecond, and how it becomes one.

    Parameters
    ----------
    nanoseconds : int
        The value: since 1970 if it is an instant.
    dtype : pyarrow.DataType
    name, use, of
        See `in_microseconds`.
    """
    rule = (
        f"{use} is of whole microseconds, and what is finer is not rounded unasked: "
        f"{_remedy(name, dtype, of)}"
    )
    column = name if of is None else f"{of}.{name}"
    return PrecisionError(rule, value=_format_value(nanoseconds, dtype), column=column)


def _remedy(name: str, dtype: pa.DataType, of: str | None) -> str:
    """Return what rounds a column, as it is written."""
    if types.is_time64(dtype):
        return "cast it first, with pyarrow.compute.floor_temporal"
    to = "INTERVAL DAY TO SECOND" if types.is_duration(dtype) else "TIMESTAMP"
    if types.is_timestamp(dtype) and dtype.tz is None:
        to = "TIMESTAMP_NTZ"
    path = ".".join(f"`{part.replace('`', '``')}`" for part in (of, name) if part is not None)
    text = f"CAST({path} AS {to})"
    plain = name.isidentifier() and not iskeyword(name)
    said = f'{name}="{text}"' if plain else f"**{{{name!r}: {text!r}}}"
    return f"round it first, with .with_columns({said})"


def _check_times_of_day(column: pa.Array | pa.ChunkedArray, name: str) -> None:
    dtype = column.type
    if types.is_time64(dtype):
        in_microseconds(column, name, "a time of day in Python")
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
    """Return the first value that is no whole microsecond."""
    known = column.drop_null().cast(pa.int64())
    whole = pc.multiply(pc.divide(known, _NANOSECONDS), _NANOSECONDS)
    found: int = known.filter(pc.not_equal(known, whole))[0].as_py()
    return found


def _format_value(nanoseconds: int, dtype: pa.DataType) -> str:
    if not types.is_timestamp(dtype):
        return f"{nanoseconds} ns"
    text: str = pa.scalar(nanoseconds, pa.timestamp("ns")).cast(pa.string()).as_py()
    return text if dtype.tz is None else f"{text}Z"
