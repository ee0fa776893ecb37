"""The columns of aggregates, each by a name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import FunctionType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpu_windows.aggregates.aggregate import Aggregate, Framed
from gpu_windows.aggregates.definitions import DEFINITIONS, BoundAggregate, bind
from gpu_windows.aggregates.user import BoundUserAggregate, UserAggregate
from gpu_windows.errors import QueryError, UnsupportedAggregateError
from gpu_windows.functions.window import Aggregates
from gpu_windows.planning.validation import check_distinct
from gpu_windows.runners.outputs import Source
from gpu_windows.vocabulary.options import TICKS

if TYPE_CHECKING:
    from gpu_windows.annotations import Column


def _over_lengths(
    aggregates: Mapping[str, Aggregate | UserAggregate], lengths: Sequence[int]
) -> dict[str, Aggregate | UserAggregate]:
    """Return every aggregate over each length, ``n`` as ``n_1m`` and ``n_1h``.

    Raises
    ------
    QueryError
        If one has a length already, or is a user's.
    """
    found: dict[str, Aggregate | UserAggregate] = {}
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregate):
            rule = f"{name} must be a built-in aggregate: windows of several lengths share partials"
            raise QueryError(rule, value=type(aggregate.function).__name__)
        if aggregate.recent is not None:
            rule = f"{name} is given over every length of these windows: leave out within"
            raise QueryError(rule, value=aggregate.describe())
        for length in lengths:
            found[f"{name}_{_short(length)}"] = replace(aggregate, recent=length)
    return found


def _short(length: int) -> str:
    """Return a duration in its largest unit that divides it: ``90m``."""
    units = {"d": "day", "h": "hour", "m": "minute", "s": "second", "ms": "millisecond"}
    for short, unit in units.items():
        if length % TICKS[unit] == 0:
            return f"{length // TICKS[unit]}{short}"
    return f"{length}us"


def bind_aggregates(
    source: Source,
    aggregates: Mapping[str, Aggregate | UserAggregate],
    lengths: Sequence[int] = (),
) -> tuple[Source, Aggregates]:
    """Return the source with all columns named, and the aggregates of windows bound to their types.

    With ``lengths`` each is over the last part of a window of each length.

    Raises
    ------
    QueryError
        If one is no aggregate, or is over a frame.
    UnsupportedAggregateError
        If one does not take the type of its column, or is for frames only.
    """
    found: dict[str, Aggregate | UserAggregate] = {}
    for name, aggregate in aggregates.items():
        _check_aggregate(name, aggregate)
        if isinstance(aggregate, UserAggregate):
            source, columns = named_columns(source, aggregate.columns)
            found[name] = replace(aggregate, columns=columns)
        else:
            source, found[name] = name_arguments(source, name, aggregate)
    if lengths:
        found = _over_lengths(found, lengths)
    of_types = (bind_any(name, aggregate, source.schema) for name, aggregate in found.items())
    return source, Aggregates(tuple(of_types))


def _check_aggregate(name: str, aggregate: object) -> None:
    if isinstance(aggregate, Framed):
        rule = f"{name} is over a frame: that is for key_by(...).over(...), not for windows"
        raise QueryError(rule, value=aggregate.frame.describe())
    if not isinstance(aggregate, Aggregate | UserAggregate):
        raise no_aggregate(name, aggregate)


def no_aggregate(name: str, found: object) -> QueryError:
    """Return the error for a result that is not of an aggregate."""
    own = f"{__name__.partition('.')[0]}.aggregates"
    if isinstance(found, FunctionType) and found.__module__.startswith(own):
        called = found.__name__.rstrip("_")
        rule = f"{name} must be an aggregate: call the function, as in {name}=gw.{called}(...)"
        return QueryError(rule, value=f"gw.{called}")
    rule = f"{name} must be an aggregate of gpu_windows, such as {name}=gw.sum('amount')"
    if name.strip("_") in ("filter", "where"):
        rule = f"{name} is a name of a result here; say gw.sum('amount').filter('amount > 0')"
    return QueryError(rule, value=repr(found))


def check_named(unnamed: Sequence[object]) -> None:
    """Raise `QueryError` if aggregates were given without a name, or in a mapping."""
    if unnamed:
        rule = "aggregates are named, such as total=gw.sum('amount') (of a mapping: **aggregates)"
        values = (e.describe() if isinstance(e, Aggregate) else repr(e) for e in unnamed)
        raise QueryError(rule, value=", ".join(values))


def bind_any(
    name: str, aggregate: Aggregate | UserAggregate, schema: pa.Schema
) -> BoundAggregate | BoundUserAggregate:
    """Return an aggregate of windows bound to the types of its columns; see `bind_aggregates`."""
    if isinstance(aggregate, Aggregate):
        if DEFINITIONS[aggregate.function].of_frames:
            rule = f"{aggregate.function} is for over(frame), not for windows"
            raise UnsupportedAggregateError(rule, value=name)
        return bind(name, aggregate, schema)
    return BoundUserAggregate(name, aggregate.function, tuple(map(str, aggregate.columns)))


def as_list(columns: Sequence[str | Column]) -> Any:
    """Return columns as a tuple.

    Raises
    ------
    QueryError
        If it is one string, or a list within a list.
    """
    given: Any = columns
    several = isinstance(given, Sequence) and not isinstance(given, str)
    if not several or any(isinstance(column, list | tuple) for column in columns):
        rule = "columns are a sequence of names or Columns, such as ['value']"
        raise QueryError(rule, value=repr(columns))
    return tuple(columns)


def bind_columns(
    source: Source, columns: Iterable[str | Column], fallback: str | None = None
) -> tuple[Source, tuple[str, ...]]:
    """Return the source with columns in it, and their names.

    Expressions get their own names, or where a ``fallback`` is given it and their number.
    """
    names = []
    for number, column in enumerate(columns):
        own = None if fallback is None else f"{fallback}_{number}"
        source, name = source.bind_column(column, own)
        names.append(name)
    return source, tuple(names)


def named_columns(
    source: Source, columns: Sequence[str | Column]
) -> tuple[Source, tuple[str, ...]]:
    """Return the source with columns named that a function sees, and their names."""
    source, names = bind_columns(source, as_list(columns))
    check_seen([*map(source.display_name, dict.fromkeys(names))])
    return source, names


def window_columns(
    source: Source, columns: Sequence[str | Column] | None, keys: Sequence[str]
) -> tuple[Source, tuple[str, ...]]:
    """Return the source with columns named that a function sees of windows, and their names.

    Raises
    ------
    QueryError
        If there are none: the rows of a table without columns are not counted.
    """
    if columns is None:
        columns = [name for name in source.user_columns if name not in keys] or keys
    source, names = named_columns(source, columns)
    if not names:
        rule = "a function of windows sees at least one column of their rows, such as the time"
        raise QueryError(rule, value="none")
    return source, names


def check_seen(names: Sequence[str]) -> None:
    """Raise `NameClashError` if a function would see two columns by the same name."""
    if len({*names}) < len(names):
        check_distinct(names, "columns that a function sees must have different names")


def name_arguments(source: Source, name: str, aggregate: Aggregate) -> tuple[Source, Aggregate]:
    """Return a source that has the columns of an aggregate, and the aggregate of their names.

    Parameters
    ----------
    source : Source
    name : str
        Of the result, after which expressions are called, but conditions: they are told as written.
    aggregate : Aggregate
        Of names and, on Spark, expressions.
    """
    names: dict[str, Any] = {}
    for part in ("column", "by", "where"):
        column = getattr(aggregate, part)
        if column is not None:
            fallback = None if part == "where" else f"__{name}_{part}"
            source, names[part] = source.bind_column(column, fallback)
    return source, replace(aggregate, **names)
