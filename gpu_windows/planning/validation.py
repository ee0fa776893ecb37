"""The rules that a query is checked against when it is built."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches

import pyarrow as pa
from pyarrow import types

from gpu_windows.column_types.logical import collations, is_comparable, is_text, name_of, remedy_of
from gpu_windows.column_types.widening import common_type
from gpu_windows.errors import (
    ColumnNotFoundError,
    ColumnTypeError,
    InvalidTriggerError,
    NameClashError,
    QueryError,
)
from gpu_windows.functions.window import WindowFunction
from gpu_windows.vocabulary.deltas import Delta
from gpu_windows.vocabulary.evictors import Evictor
from gpu_windows.vocabulary.triggers import Trigger
from gpu_windows.vocabulary.windows import (
    CalendarWindows,
    EventTimeSessionWindows,
    GlobalWindows,
    MergingWindowAssigner,
    WindowAssigner,
)

_RESERVED = re.compile(
    r"rejection_reason|"
    r"__(met|slice|shard|blob|counters|user_counters|arrival|end|watermark|place|p\d+[a-z]*\d*|"
    r"copy|no_time|no_key|spread|left_mark|right_mark|version_deleted|number|until|timer|prior|waits|"
    r"group|piece|status|hash|event|processing)"
)

#: Lower case with final sigma as sigma, as in Spark's collations.
_LOWER = "translate(lower({}), '\u03c2', '\u03c3')"
_BY_BYTES = "collate({}, 'UTF8_BINARY')"
#: Expressions without a collation that are equal where strings of a collation are.
_EQUAL_TEXTS = {
    "UTF8_LCASE": _LOWER.format(_BY_BYTES),
    "UTF8_BINARY_RTRIM": f"rtrim({_BY_BYTES})",
    "UTF8_LCASE_RTRIM": _LOWER.format(f"rtrim({_BY_BYTES})"),
}

#: Error message for clashing names in results of windows.
DISTINCT = "keys, window_start, window_end and results must have different names"


def check_parts(
    schema: pa.Schema,
    assigner: WindowAssigner,
    trigger: Trigger,
    evictor: Evictor | None,
    function: WindowFunction,
) -> None:
    """Refuse assigners, triggers, evictors and functions that do not fit together in Flink.

    Raises
    ------
    InvalidTriggerError
        A trigger that cannot merge on windows that do, or one that waits for the end of a window
        that has none.
    InvalidFunctionError
        State for each window, or an aggregate without merge, on windows that merge.
    ColumnTypeError
        A delta or a gap over a column of another type.
    """
    _check_trigger(assigner, trigger)
    if isinstance(assigner, MergingWindowAssigner):
        function.check_merging()
    if isinstance(assigner, EventTimeSessionWindows) and assigner.gap_column is not None:
        dtype = schema.field(assigner.gap_column).type
        fits = types.is_integer(dtype) and not types.is_uint64(dtype)
        if not (fits or types.is_duration(dtype)):
            rule = "a gap is an integer of int64 (microseconds) or an INTERVAL DAY TO SECOND"
            raise ColumnTypeError(rule, value=str(dtype), column=assigner.gap_column)
    for part in (*trigger.walk(), evictor):
        delta = getattr(part, "delta", None)
        if isinstance(delta, Delta):
            _check_delta(schema, delta)


def check_calendar(assigner: CalendarWindows, time: pa.Field) -> None:
    """Raise `ColumnTypeError` unless windows have a zone where event times are instants."""
    if not types.is_timestamp(time.type):
        return  # ticks: instants in windows of a zone, else times on a clock
    has_zone = time.type.tz is not None
    if has_zone and assigner.time_zone is None:
        rule = "windows of a calendar need the zone whose days they are: time_zone='Europe/Zurich'"
    elif assigner.time_zone is not None and not has_zone:
        rule = (
            "event times without a zone are in windows of the times that they show: leave "
            "time_zone out, or say in event_time(..., time_zone=...) whose times they are"
        )
    else:
        return
    raise ColumnTypeError(rule, value=name_of(time.type), column=time.name)


def _check_delta(schema: pa.Schema, delta: Delta) -> None:
    for column in delta.columns:
        dtype = schema.field(column).type
        fits = types.is_integer(dtype) and not types.is_uint64(dtype)
        if not (fits or types.is_floating(dtype)):
            rule = "a delta compares numbers: integers of int64 and floats"
            raise ColumnTypeError(rule, value=str(dtype), column=column)


def _check_trigger(assigner: WindowAssigner, trigger: Trigger) -> None:
    name = type(trigger).__name__
    if isinstance(assigner, MergingWindowAssigner) and not trigger.can_merge():
        raise InvalidTriggerError("windows that merge need a trigger that can merge", value=name)
    if isinstance(assigner, GlobalWindows) and trigger.waits_for_end:
        raise InvalidTriggerError(
            "a global window has no end for a trigger to wait for", value=name
        )


def is_user_code(part: object) -> bool:
    """Whether a part of a query is of a user's class, or calls a user's function."""
    delta = getattr(part, "delta", None)
    if isinstance(delta, Delta) and delta.function is not None:
        return True
    return type(part).__module__.partition(".")[0] != __name__.partition(".")[0]


def require_column(schema: pa.Schema, name: str) -> None:
    """Raise `ColumnNotFoundError` if the input has no such column (or has it twice)."""
    indices = schema.get_all_field_indices(name)
    if len(indices) > 1:
        rule = "the input has several columns of this name: rename one"
        raise NameClashError(rule, value=repr(name))
    if not indices:
        fields = [each for each in schema if not _RESERVED.fullmatch(each.name.lower())]
        names = ", ".join(each.name for each in fields)
        rule = f"the input has no such column{_remedy(name, fields)}; it has {names}"
        raise ColumnNotFoundError(rule, column=name)


def _remedy(name: str, fields: Sequence[pa.Field]) -> str:
    """Return a hint for the name of a missing column: what to write; empty if unknown."""
    names = [field.name for field in fields]
    plain = name.replace("`", "")
    if plain != name and plain in names:
        return f": names are written without backticks, {plain}"
    struct, _, inner = plain.partition(".")
    if inner and any(field.name == struct and types.is_struct(field.type) for field in fields):
        new = inner.replace(".", "_")
        return f": of a struct make a column first, with_columns({new}={plain!r})"
    by_lower = {each.lower(): each for each in names}
    near = [by_lower[plain.lower()]] if plain.lower() in by_lower else []
    near = near or get_close_matches(plain, names, 1, 0.75)
    return f": did you mean {near[0]}" if near else ""


def check_free(schema: pa.Schema, name: str) -> None:
    """Raise `NameClashError` if the input has a column of a name that this package adds."""
    if name.lower() in (other.lower() for other in schema.names):
        rule = "this name is used inside gpu_windows: rename the column"
        raise NameClashError(rule, value=repr(name))


def check_new(schema: pa.Schema, names: Sequence[str]) -> None:
    """Raise `QueryError` unless a user's names of new columns are those of no column."""
    check_reserved(names)
    used = {name.lower() for name in schema.names}
    for name in names:
        if name.lower() in used:
            raise QueryError("a column of this name exists", value=name)
        used.add(name.lower())


def check_distinct(names: Iterable[str], rule: str = DISTINCT) -> None:
    """Raise `NameClashError` if a name comes twice; case does not count, as in Spark."""
    names = [*names]
    times = Counter(name.lower() for name in names)
    twice = sorted({name for name in names if times[name.lower()] > 1})
    if twice:
        raise NameClashError(rule, value=", ".join(map(repr, twice)))


def check_reserved(names: Iterable[str]) -> None:
    """Raise `NameClashError` for names that are used inside the package."""
    clashes = sorted({name for name in names if _RESERVED.fullmatch(name.lower())})
    if clashes:
        rule = "these names are used inside gpu_windows: rename the columns"
        raise NameClashError(rule, value=", ".join(map(repr, clashes)))


def check_time(schema: pa.Schema, name: str, role: str = "event time") -> None:
    """Refuse a column that cannot be the event time, or carry watermarks."""
    require_column(schema, name)
    dtype = schema.field(name).type
    if not (types.is_timestamp(dtype) or types.is_int64(dtype)):
        raise not_a_timestamp(role, dtype, str(dtype), name)


def not_a_timestamp(role: str, dtype: pa.DataType, display_type: str, name: str) -> ColumnTypeError:
    """Return the error for a column that is not a TIMESTAMP, with how to make it one."""
    how = "convert it first"
    if types.is_integer(dtype) or types.is_floating(dtype):
        how = (
            "convert seconds with timestamp_seconds, milliseconds with timestamp_millis (int64 in "
            "Arrow: cast(pa.timestamp('s', 'UTC')), or 'ms')"
        )
    elif is_text(dtype):
        how = (
            "convert strings with to_timestamp (in Arrow: pyarrow.compute.strptime, then "
            "assume_timezone)"
        )
    elif types.is_date(dtype):
        how = "convert dates with cast('timestamp') (in Arrow: cast(pa.timestamp('s', 'UTC')))"
    return ColumnTypeError(f"{role} must be TIMESTAMP: {how}", value=display_type, column=name)


def union_schema(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Return the columns of a union, in the order of the first input: see `common_type`.

    Raises
    ------
    QueryError
        If inputs have different columns, or no type holds those of all.
    """
    united = schemas[0]
    for other in schemas[1:]:
        odd = set(united.names) ^ set(other.names) or {
            name for name in other.names if other.names.count(name) > 1
        }
        if odd:
            rule = "inputs of a union have the same columns"
            raise QueryError(rule, value=", ".join(sorted(odd)))
        rule = "inputs of a union have columns of the same types"
        united = pa.schema(
            field.with_type(require_common(field.type, other.field(field.name), rule))
            for field in united
        )
    return united


def require_common(one: pa.DataType, other: pa.Field, rule: str) -> pa.DataType:
    """Return the type that holds the columns of two inputs: see `common_type`.

    Raises
    ------
    ColumnTypeError
        If there is none: with the rule, and what to do.
    """
    dtype = common_type(one, other.type)
    if dtype is None:
        how = f"{rule}, or types that one holds exactly: it is {one} in the first one; cast one"
        raise ColumnTypeError(how, value=str(other.type), column=other.name)
    return dtype


def check_key(name: str, dtype: pa.DataType) -> None:
    """Refuse a type that cannot be a key."""
    if types.is_struct(dtype):
        for child in dtype:
            check_key(f"{name}.{child.name}", child.type)
    elif not is_comparable(dtype):
        rule = f"a key must be of a simple type or a struct of them: {remedy_of('key')}"
        raise ColumnTypeError(rule, value=str(dtype), column=name)


def check_collations(compared: Iterable[pa.Field], display_name: Callable[[str], str]) -> None:
    """Refuse comparisons of collated strings, also within structs, lists and maps.

    With a collation (Spark's ``STRING COLLATE UTF8_LCASE``) different bytes may be equal. Python
    receives the bytes, and comparing those would give other results than Spark.

    Parameters
    ----------
    compared : iterable of pyarrow.Field
        Columns and results whose values are compared.
    display_name : callable
        From a column to the user's name of it.

    Raises
    ------
    ColumnTypeError
        With the column, its collation, and an expression to compare instead.
    """
    for field in compared:
        for collation in collations(field):
            column = display_name(field.name)
            rule = _collation_rule(column, collation)
            raise ColumnTypeError(rule, value=collation, column=column)


def _collation_rule(column: str, collation: str) -> str:
    quoted = f"`{column.replace('`', '``')}`"
    by_bytes = f"compare its bytes, {_BY_BYTES.format(quoted)}"
    equal = _EQUAL_TEXTS.get(collation.upper())
    alike = "" if equal is None else f", or by the collation, {equal.format(quoted)}"
    return (
        "collated strings cannot be keys, orders or compared values: "
        f"add a column, using with_columns, to {by_bytes}{alike}"
    )
