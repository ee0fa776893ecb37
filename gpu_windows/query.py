"""The query: a frozen, validated value that says what is computed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import types

from gpu_windows.aggregates import is_ordered
from gpu_windows.errors import (
    ColumnNotFoundError,
    ColumnTypeError,
    InvalidDurationError,
    NameClashError,
    QueryError,
)
from gpu_windows.functions import Aggregates, Collect, Reduce, WindowFunction
from gpu_windows.options import Options, show_ticks
from gpu_windows.triggers import EventTimeTrigger, Trigger
from gpu_windows.watermarks import WatermarkStrategy
from gpu_windows.windows import WindowAssigner

#: Name of the column that says why a row was rejected or late.
REASON = "rejection_reason"
_RESERVED = re.compile(rf"{REASON}|__(slice|shard|blob|counters|arrival|p\d+[a-z]*\d*)")

#: Names of the window's bounds in every result.
WINDOW_START, WINDOW_END = "window_start", "window_end"


@dataclass(frozen=True)
class Query:
    """A keyed window over one input.

    Parameters
    ----------
    schema : pyarrow.Schema
        Columns of the input. The time column is int64 ticks or a timestamp with a time zone.
    time : str
        The event time column.
    watermarks : WatermarkStrategy
    keys : tuple of str
    assigner : WindowAssigner
    function : WindowFunction
        Aggregates, `Collect` or `Reduce`.
    trigger : Trigger
    allowed_lateness : int
        In ticks.
    order_by : tuple of str
        Columns that give the order of arrival where a shuffle loses it.
    options : Options

    Raises
    ------
    QueryError
        A subclass names the rule, the value and the column.
    """

    schema: pa.Schema
    time: str
    watermarks: WatermarkStrategy
    keys: tuple[str, ...]
    assigner: WindowAssigner
    function: WindowFunction
    trigger: Trigger = EventTimeTrigger()  # noqa: RUF009 - frozen
    allowed_lateness: int = 0
    order_by: tuple[str, ...] = ()
    options: Options = Options()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        _check_time(self.schema, self.time)
        if not self.keys:
            raise QueryError("key_by needs at least one column")
        for name in (*self.keys, *self.used_columns, *self.order_by):
            require_column(self.schema, name)
        for name in self.keys:
            _check_key(name, self.schema.field(name).type)
        if self.allowed_lateness < 0:
            rule = "allowed lateness must not be negative"
            raise InvalidDurationError(rule, value=show_ticks(self.allowed_lateness))
        if not self.result_names:
            raise QueryError("a window function needs at least one result column")
        check_distinct((*self.keys, WINDOW_START, WINDOW_END, *self.result_names))
        _check_reserved((*self.schema.names, *self.result_names))

    @property
    def used_columns(self) -> tuple[str, ...]:
        """Columns that the window function reads, each once."""
        if isinstance(self.function, Aggregates):
            names = [name for bound in self.function.bound for name in bound.aggregate.columns]
            return tuple(dict.fromkeys(names))
        return self.function.columns

    @property
    def result_names(self) -> tuple[str, ...]:
        """Names of the result columns after the keys and the window's bounds."""
        if isinstance(self.function, Aggregates):
            return tuple(bound.name for bound in self.function.bound)
        return self.function.columns

    @property
    def result_fields(self) -> tuple[pa.Field, ...]:
        """Arrow fields of the result columns after the keys and the window's bounds."""
        if isinstance(self.function, Aggregates):
            return tuple(pa.field(bound.name, bound.result_type) for bound in self.function.bound)
        fields = [self.schema.field(name) for name in self.function.columns]
        if isinstance(self.function, Collect):
            return tuple(pa.field(field.name, pa.list_(field.type)) for field in fields)
        return tuple(pa.field(field.name, field.type) for field in fields)

    @property
    def order_dependent(self) -> tuple[str, ...]:
        """The parts of the query whose result depends on the order of arrival, in words."""
        parts = []
        if isinstance(self.function, Aggregates):
            bound = [b for b in self.function.bound if b.definition.order_dependent]
            parts += [b.aggregate.describe() for b in bound]
        elif isinstance(self.function, Collect):
            parts.append("the order of collected rows")
        elif isinstance(self.function, Reduce):
            parts.append("reduce")
        if not isinstance(self.trigger, EventTimeTrigger):
            parts.append(f"the trigger ({self.trigger.describe()})")
        return tuple(parts)


def require_column(schema: pa.Schema, name: str) -> None:
    """Raise `ColumnNotFoundError` if the input has no such column (or has it twice)."""
    indices = schema.get_all_field_indices(name)
    if len(indices) > 1:
        raise NameClashError("the input has several columns of this name", value=repr(name))
    if not indices:
        rule = f"the input has no such column; it has {', '.join(schema.names)}"
        raise ColumnNotFoundError(rule, column=name)


def check_distinct(names: Iterable[str]) -> None:
    """Raise `NameClashError` if a name comes twice."""
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        rule = "keys, window_start, window_end and results must have different names"
        raise NameClashError(rule, value=", ".join(map(repr, twice)))


def _check_reserved(names: Iterable[str]) -> None:
    clashes = sorted({name for name in names if _RESERVED.fullmatch(name.lower())})
    if clashes:
        rule = "these names are used inside gpu_windows: rename the columns"
        raise NameClashError(rule, value=", ".join(map(repr, clashes)))


def _check_time(schema: pa.Schema, name: str) -> None:
    require_column(schema, name)
    kind = schema.field(name).type
    if types.is_timestamp(kind) and kind.tz is None:
        rule = (
            "event time must be TIMESTAMP; TIMESTAMP_NTZ names no instant: "
            "convert it, e.g. with to_utc_timestamp, in the time zone that it was written in"
        )
        raise ColumnTypeError(rule, value="TIMESTAMP_NTZ", column=name)
    if not (types.is_timestamp(kind) or types.is_int64(kind)):
        raise ColumnTypeError("event time must be TIMESTAMP", value=str(kind), column=name)


def _check_key(name: str, kind: pa.DataType) -> None:
    if types.is_struct(kind):
        for child in kind:
            _check_key(f"{name}.{child.name}", child.type)
    elif not (is_ordered(kind) or is_text(kind) or types.is_decimal(kind) or types.is_uint64(kind)):
        rule = "a key must be of a simple type or a struct of them"
        raise ColumnTypeError(rule, value=str(kind), column=name)


def is_text(kind: pa.DataType) -> bool:
    """Whether values are strings or binary."""
    text = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return any(is_kind(kind) for is_kind in text)
