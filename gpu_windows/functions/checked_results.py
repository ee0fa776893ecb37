"""Checks of the results of users' functions; errors name the function and the column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from types import GeneratorType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from gpu_windows.column_types.logical import logical_type
from gpu_windows.column_types.time_units import other_unit, warn_of_timer
from gpu_windows.errors import InvalidFunctionError
from gpu_windows.user_values import copy_table, to_tick
from gpu_windows.vocabulary.triggers.base import Row

#: Returns whether a value has a fraction that would be cut off.
Cuts: TypeAlias = Callable[[Any], bool]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Types of values that may have a fraction.
_FRACTIONAL = (float, np.floating, Decimal)

#: Types of values without one.
_WHOLE = frozenset({int, bool, type(None), str, bytes})

#: Usual types of iterables of rows.
_ROWS = frozenset({list, tuple, GeneratorType})

#: Errors of pyarrow for values that are not of a type.
CONVERSION_ERRORS = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    ArithmeticError,
    TypeError,
    ValueError,
)


def as_array(values: Sequence[object], dtype: pa.DataType) -> pa.Array:
    """Build a column, but refuse fractions for integers, which pyarrow would cut off.

    Raises
    ------
    one of `CONVERSION_ERRORS`
    """
    if is_cut(values, dtype):
        raise pa.ArrowInvalid(f"a fraction is no {dtype}")
    return pa.array(values, dtype)


def is_cut(values: Sequence[object], dtype: pa.DataType) -> bool:
    """Return whether pyarrow would cut off a fraction in one of the values, at any depth."""
    cuts = _cuts(dtype)
    if cuts is None or _WHOLE.issuperset(map(type, values)):  # the latter takes no time
        return False
    return any(cuts(value) for value in values if value is not None)


@cache
def _cuts(dtype: pa.DataType) -> Cuts | None:
    """Return a check whether a value of a type would be cut off; None if none can be."""
    if types.is_integer(dtype):
        return _has_fraction
    if types.is_temporal(dtype):
        is_finest = getattr(dtype, "unit", None) == "ns"
        return _has_fraction if is_finest else _is_finer
    if types.is_struct(dtype):
        return _any_part([(i, field.name, field.type) for i, field in enumerate(dtype)])
    if types.is_map(dtype):
        parts = _any_part([(0, "key", dtype.key_type), (1, "value", dtype.item_type)])
        return parts and (
            lambda value: any(map(parts, value.items() if isinstance(value, Mapping) else value))
        )
    if types.is_list(dtype) or types.is_large_list(dtype) or types.is_fixed_size_list(dtype):
        cuts = _cuts(dtype.value_type)
        return cuts and (lambda value: any(cuts(each) for each in value if each is not None))
    return None


def _has_fraction(value: Any) -> bool:
    return isinstance(value, _FRACTIONAL) and value % 1 != 0


def _is_finer(value: Any) -> bool:
    """Return whether a time or duration, such as one of pandas, has parts of microseconds."""
    nanoseconds = getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0)
    return bool(nanoseconds) or _has_fraction(value)


def _any_part(fields: list[tuple[int, str, pa.DataType]]) -> Cuts | None:
    """Return a check whether a part of a mapping, or of a tuple, would be cut off."""
    parts = [(i, name, cuts) for i, name, dtype in fields if (cuts := _cuts(dtype)) is not None]

    def cuts_one(value: Any) -> bool:
        is_mapping = isinstance(value, Mapping)
        for i, name, cuts in parts:
            part = value.get(name) if is_mapping else value[i] if i < len(value) else None
            if part is not None and cuts(part):
                return True
        return False

    return cuts_one if parts else None


def check_not_cut(value: object, dtype: pa.DataType, owner: str) -> object:
    """Return a value that a function stores.

    Raises
    ------
    InvalidFunctionError
        If a fraction of it would be cut off.
    """
    cuts = _cuts(dtype)
    if cuts is not None and value is not None and cuts(value):
        raise InvalidFunctionError(f"{owner} must keep {dtype}", value=repr(value))
    return value


def checked_tick(time: Any, owner: str) -> int:
    """Return the time of a timer that a function sets, in ticks.

    Raises
    ------
    InvalidFunctionError
        If it is neither an integer of 64 bits nor a datetime in whole microseconds.
    """
    if isinstance(time, datetime) and not _is_finer(time):
        aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(microseconds=1)
    tick = to_tick(time)
    if tick is None:
        rule = f"{owner} sets timers at ticks (microseconds), integers of 64 bits, or datetimes"
        raise InvalidFunctionError(rule, value=repr(time))
    unit = other_unit(tick, tick)
    if unit is not None:
        warn_of_timer(owner, unit)
    return tick


def checked_column(
    values: Sequence[object],
    field: pa.Field,
    owner: str,
    describe: Callable[[int], str] | None = None,
) -> pa.Array:
    """Build a column from values that a function returned.

    ``describe``: returns, for messages, where the value with an index is from.

    Raises
    ------
    InvalidFunctionError
        With the first value that is not of the declared type.
    """
    try:
        column = as_array(values, field.type)
    except CONVERSION_ERRORS as error:
        at = next((i for i, v in enumerate(values) if not is_of_type(v, field.type)), None)
        wrong = error if at is None else values[at]
        place = "" if at is None or describe is None else f" (at {describe(at)})"
        rule = f"{owner} must return {field.type}{place}"
        raise InvalidFunctionError(rule, value=repr(wrong), column=field.name) from error
    _check_nulls(column, field, owner, describe)
    return column


def _check_nulls(
    column: pa.Array | pa.ChunkedArray,
    field: pa.Field,
    owner: str,
    describe: Callable[[int], str] | None = None,
) -> None:
    if column.null_count and not field.nullable:
        rule = f"{owner} must return a value in each row: the column is declared NOT NULL"
        if describe is not None:
            rule += f" (at {describe(pc.index(column.is_null(), True).as_py())})"
        raise InvalidFunctionError(rule, value="None", column=field.name)


def is_of_type(value: object, dtype: pa.DataType) -> bool:
    """Return whether a column of a type can have a value."""
    try:
        as_array([value], dtype)
    except CONVERSION_ERRORS:
        return False
    return True


def as_rows(returned: Any) -> Iterable[Any]:
    """Return the rows that a function returned for a row, a timer or a pair; None is no row.

    Raises
    ------
    InvalidFunctionError
        If it returned anything but rows, such as a single row.
    """
    if returned.__class__ in _ROWS:
        rows: Iterable[Any] = returned
        return rows
    if returned is None:
        return ()
    if isinstance(returned, Mapping) or not isinstance(returned, Iterable):
        rule = "a function must return rows: a list of dicts, a generator of them, or None"
        raise InvalidFunctionError(rule, value=repr(returned))
    return returned


def checked_rows(returned: Any, output: pa.Schema, owner: str) -> Iterator[Row]:
    """Yield the rows that a function returned for a window.

    Raises
    ------
    InvalidFunctionError
        If they are not mappings of exactly the declared columns.
    """
    rule = f"{owner} must return an iterable of dicts of exactly {', '.join(output.names)}"
    if not isinstance(returned, Iterable) or isinstance(returned, Mapping):
        raise InvalidFunctionError(rule, value=repr(returned))
    for row in returned:
        check_row(row, output.names, rule)
        yield row


def check_row(row: Any, names: Sequence[str], rule: str) -> None:
    """Refuse what is not a mapping of exactly the declared columns, by a rule.

    Raises
    ------
    InvalidFunctionError
        With the row, and the first column that it lacks, or that is not declared.
    """
    if not isinstance(row, Mapping):
        raise InvalidFunctionError(rule, value=repr(row))
    wrong = [name for name in names if name not in row] or [
        name for name in row if name not in names
    ]
    if wrong:
        raise InvalidFunctionError(rule, value=repr(row), column=str(wrong[0]))


def checked_table(
    returned: Any, count: int, output: pa.Schema, owner: str, of: str = "windows"
) -> tuple[pa.Table, NDArray[np.int64]]:
    """Return the table that a function returned for ``count`` windows, and the window of each row.

    ``of``: what messages call the windows.

    Raises
    ------
    InvalidFunctionError
        If they are not as declared.
    """
    table, places = _with_places(returned, count, owner)
    if not isinstance(table, pa.Table):
        rule = f"{owner} must return a pyarrow.Table"
        raise InvalidFunctionError(rule, value=type(table).__name__)
    if table.column_names != output.names:
        rule = f"{owner} must return the columns {', '.join(output.names)}"
        raise InvalidFunctionError(rule, value=", ".join(table.column_names))
    if len(table) != len(places):
        rule = f"{owner} must return a row for each of {len(places)} {of}, or their places"
        raise InvalidFunctionError(rule, value=f"{len(table)} rows")
    inside = (places >= 0) & (places < count)
    if not inside.all() or (np.diff(places) < 0).any():
        rule = f"{owner} must return ascending places below {count}"
        wrong = int(np.flatnonzero(~inside | (np.diff(places, prepend=places[:1]) < 0))[0])
        raise InvalidFunctionError(rule, value=f"{places[wrong]} at row {wrong}")
    for field in output:
        _check_nulls(table.column(field.name), field, owner)
    rule = f"{owner} must return columns of the declared types"
    unlike = [
        f"{given.name}: {given.type}, declared {wanted.type}"
        for given, wanted in zip(table.schema, output, strict=True)
        if not _may_become(given.type, wanted.type)
    ]
    if unlike:
        raise InvalidFunctionError(rule, value="; ".join(unlike))
    try:
        return copy_table(table.cast(output)), places
    except CONVERSION_ERRORS as error:
        raise InvalidFunctionError(rule, value=str(error)) from error


def _may_become(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a type may be cast to another one: texts and truths are never numbers."""
    given, wanted = logical_type(given), logical_type(wanted)
    if types.is_null(given) or given == wanted:
        return True
    if types.is_nested(given) and types.is_nested(wanted):
        parts = zip(_parts_of(given), _parts_of(wanted), strict=False)
        return all(_may_become(one, other) for one, other in parts)
    return not any(types.is_string(kind) or types.is_boolean(kind) for kind in (given, wanted))


def _parts_of(dtype: pa.DataType) -> list[pa.DataType]:
    return [dtype.field(i).type for i in range(dtype.num_fields)]


def _with_places(returned: Any, count: int, owner: str) -> tuple[Any, NDArray[np.int64]]:
    """Return a table and, for each of its rows, the index of its window in the batch."""
    if not isinstance(returned, tuple):
        return returned, np.arange(count)
    rule = f"{owner} must return a table, or a table and the places of its rows, int64[rows]"
    if len(returned) != 2:
        raise InvalidFunctionError(rule, value=f"{len(returned)} values")
    try:
        places = np.asarray(returned[1])
    except ValueError as error:
        raise InvalidFunctionError(rule, value=repr(returned[1])) from error
    if places.ndim != 1 or (places.size and places.dtype.kind not in "iu"):
        raise InvalidFunctionError(rule, value=repr(returned[1]))
    return returned[0], places.astype(np.int64)
