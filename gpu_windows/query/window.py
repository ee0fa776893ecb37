"""The query: a frozen, validated value that says what is computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from gpu_windows.errors import InvalidDurationError, QueryError
from gpu_windows.evictors import Evictor
from gpu_windows.functions.interval_join import JoinInTime
from gpu_windows.functions.window import (
    Aggregates,
    Collect,
    Process,
    Reduce,
    Vectorised,
    WindowFunction,
)
from gpu_windows.options import Options, show_ticks
from gpu_windows.query.validation import (
    check_distinct,
    check_key,
    check_parts,
    check_reserved,
    check_time,
    is_user_code,
    require_column,
)
from gpu_windows.triggers import (
    ContinuousEventTimeTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    Trigger,
)
from gpu_windows.watermarks import WatermarkStrategy
from gpu_windows.windows import GlobalWindows, MergingWindowAssigner, WindowAssigner

#: Name of the column that says why a row was rejected or late.
REASON = "rejection_reason"

#: What a column is that carries watermarks, in words.
CARRIER = "the column of watermarks"

#: Columns of our own, which users do not see: the time of rows that have none is null, the key of
#: rows that have none is one for all.
NO_TIME, NO_KEY = "__no_time", "__no_key"

#: Names of the window's bounds in every result.
WINDOW_START, WINDOW_END = "window_start", "window_end"

#: The firing columns: which firing of its key and window a result is, from 0, and whether it is
#: "early", "on_time" or "late".
FIRING = (
    pa.field("firing", pa.int64(), nullable=False),
    pa.field("pane", pa.string(), nullable=False),
)


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
        Aggregates, `Collect`, `Reduce`, `Process` or `Vectorised`; `JoinInTime`.
    trigger : Trigger
    evictor : Evictor, optional
    allowed_lateness : int
        In ticks.
    firing_columns : bool
        Whether results carry `FIRING`.
    order_by : tuple of str
        Columns that give the order of arrival where a shuffle loses it.
    carried : tuple of str
        Columns that nothing reads, for rows that are given back.
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
    function: WindowFunction | JoinInTime
    trigger: Trigger = EventTimeTrigger()  # noqa: RUF009 - frozen
    evictor: Evictor | None = None
    allowed_lateness: int = 0
    firing_columns: bool = False
    order_by: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()
    options: Options = Options()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        check_time(self.schema, self.time)
        if self.watermark_column is not None:
            check_time(self.schema, self.watermark_column, CARRIER)
        if not self.keys:
            raise QueryError("key_by needs at least one column; windows of all rows: window_all")
        if self.needs_time and not self.has_time:
            rule = "rows need a time: say event_time(column, watermarks)"
            part = self.assigner if self.assigner.is_event_time else self.trigger
            raise QueryError(rule, value=part.describe())
        for name in (*self.keys, *self.used_columns, *self.order_by):
            require_column(self.schema, name)
        for name in self.keys:
            check_key(name, self.schema.field(name).type)
        if self.allowed_lateness < 0:
            rule = "allowed lateness must not be negative"
            raise InvalidDurationError(rule, value=show_ticks(self.allowed_lateness))
        if not self.result_names:
            raise QueryError("a window function needs at least one result column")
        check_distinct((*self.keys, *self.window_columns, *self.result_names))
        check_reserved((*self.schema.names, *self.result_names))
        check_parts(self.schema, self.assigner, self.trigger, self.evictor, self.function)

    @property
    def watermark_column(self) -> str | None:
        """The column that carries watermarks, if one does."""
        column = self.watermarks.column
        return None if column is None else str(column)

    @property
    def used_columns(self) -> tuple[str, ...]:
        """Columns that function, assigner, trigger and evictor read, each once."""
        return tuple(dict.fromkeys((*self.function_columns, *self.part_columns)))

    @property
    def function_columns(self) -> tuple[str, ...]:
        """Columns that the window function reads, each once."""
        made = self.function.incremental if isinstance(self.function, Process) else None
        return self.function.columns if made is None else made.columns

    @property
    def part_columns(self) -> tuple[str, ...]:
        """Columns that assigner, trigger and evictor read, each once."""
        evictor = () if self.evictor is None else self.evictor.columns
        names = (*self.assigner.columns, *self.trigger.columns, *evictor)
        return tuple(dict.fromkeys(names))

    @property
    def result_names(self) -> tuple[str, ...]:
        """Names of the result columns after the keys and the window's bounds."""
        return tuple(field.name for field in self.result_fields)

    @property
    def result_fields(self) -> tuple[pa.Field, ...]:
        """Arrow fields of the result columns after the keys and the window's bounds."""
        firing = FIRING if self.firing_columns else ()
        return (*self._function_fields, *firing)

    @property
    def _function_fields(self) -> tuple[pa.Field, ...]:
        function = self.function
        if isinstance(function, Aggregates):
            return tuple(pa.field(bound.name, bound.result_type) for bound in function.bound)
        if isinstance(function, Process | Vectorised | JoinInTime):
            return tuple(function.output)
        fields = [self.schema.field(name) for name in function.columns]
        if isinstance(function, Collect):
            return tuple(pa.field(field.name, pa.list_(field.type)) for field in fields)
        return tuple(pa.field(field.name, field.type) for field in fields)

    # ---- what the parts are

    @property
    def has_time(self) -> bool:
        """Whether the rows were given a time."""
        return self.time != NO_TIME

    @property
    def has_key(self) -> bool:
        """Whether the rows were given a key; else all of them are in the same windows."""
        return self.keys != (NO_KEY,)

    @property
    def shown_keys(self) -> tuple[str, ...]:
        """The keys that users see."""
        return self.keys if self.has_key else ()

    @property
    def merges(self) -> bool:
        """Whether windows may be merged."""
        return isinstance(self.assigner, MergingWindowAssigner)

    @property
    def joins_in_time(self) -> bool:
        """Whether this is an interval join, which has no windows: its results come with its rows.

        To the runners it is a query over one window without bounds for each key.
        """
        return isinstance(self.function, JoinInTime)

    @property
    def window_columns(self) -> tuple[str, ...]:
        """Names of the result columns with the bounds of a window, if results are of windows."""
        return () if self.joins_in_time else (WINDOW_START, WINDOW_END)

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """First and last time of a row with which all that is computed of it fits int64."""
        if isinstance(self.function, JoinInTime):
            return self.function.usable_ticks
        return self.assigner.usable_ticks

    @property
    def is_global(self) -> bool:
        """Whether a key has one window without bounds."""
        return isinstance(self.assigner, GlobalWindows)

    @property
    def needs_clock(self) -> bool:
        """Whether windows end with the clock or a trigger waits for it."""
        return self.assigner.of_clock or self.trigger.needs_clock

    @property
    def needs_time(self) -> bool:
        """Whether a row without a time has no place; elsewhere it has the first of all times.

        A continuous trigger counts its intervals from the time of a row: from the first of all
        times on it would fire without end.
        """
        return self.assigner.is_event_time or self.joins_in_time or self._fires_by_intervals

    @property
    def ends_with_time(self) -> bool:
        """Whether nothing of a window is of use once event time has ended."""
        return self.assigner.is_event_time or isinstance(self.trigger, EndOfStreamTrigger)

    @property
    def fires_without_end(self) -> bool:
        """Whether the end of the input, which is the end of time, would make it fire for ever."""
        return self.is_global and self._fires_by_intervals

    @property
    def _fires_by_intervals(self) -> bool:
        return any(isinstance(t, ContinuousEventTimeTrigger) for t in self.trigger.walk())

    @property
    def rows_in_time_order(self) -> bool:
        """Whether a window's rows are taken in order of time instead of arrival.

        Flink does so for global windows that fire at the end of the input.
        """
        return isinstance(self.assigner, GlobalWindows) and self.assigner.at_end

    @property
    def keeps_rows(self) -> bool:
        """Whether the rows of a window themselves are needed when it fires."""
        function = self.function
        if self.evictor is not None or self.rows_in_time_order:
            return True
        if isinstance(function, Collect | Vectorised | JoinInTime):
            return True
        if isinstance(function, Aggregates) and function.needs_rows:
            return True
        return isinstance(function, Process) and function.incremental is None

    @property
    def has_user_function(self) -> bool:
        """Whether the window function is user code that sees rows."""
        function = self.function
        if isinstance(function, Process):
            function = function.incremental or function
        if isinstance(function, Aggregates):
            return bool(function.of_users)
        return isinstance(function, Reduce | Process | Vectorised)

    @property
    def has_user_parts(self) -> bool:
        """Whether assigner, trigger or evictor is user code."""
        parts: list[object] = [self.assigner, *self.trigger.walk()]
        if self.evictor is not None:
            parts.append(self.evictor)
        return any(is_user_code(part) for part in parts)

    @property
    def _sees_order(self) -> bool:
        return isinstance(self.function, Vectorised) and not self.function.function.order_free

    def order_dependent(self, *, bounded: bool) -> tuple[str, ...]:
        """Return the parts whose result depends on the order of arrival, in words.

        ``bounded``: whether the input is, so that no row is late.
        """
        if isinstance(self.function, JoinInTime):
            return self.function.order_dependent(bounded=bounded)
        parts = [*self._ordered_in_function]
        at_end = isinstance(self.trigger, EventTimeTrigger) and self.assigner.is_event_time
        if not at_end:  # a continuous trigger begins with the time of the first row
            parts.append(f"the trigger ({self.trigger.describe()})")
        if self.evictor is not None:
            parts.append(f"the evictor ({self.evictor.describe()})")
        if self.merges and is_user_code(self.assigner):
            parts.append(f"what is merged ({self.assigner.describe()})")
        if not bounded and self.assigner.is_event_time:
            parts += self._ordered_when_late
        return tuple(parts)

    @property
    def _ordered_in_function(self) -> Iterator[str]:
        if isinstance(self.function, Aggregates):
            bound = (b for b in self.function.built_in if b.definition.order_dependent)
            yield from (b.describe() for b in bound)
            yield from (b.describe() for b in self.function.of_users)
        elif isinstance(self.function, Collect):
            yield "the order of collected rows"
        elif isinstance(self.function, Reduce):
            yield "reduce"
        elif isinstance(self.function, Process) or self._sees_order:
            yield "the process function"

    @property
    def _ordered_when_late(self) -> Iterator[str]:
        """Yield what late rows do: one that finds a session open makes it reach further."""
        if self.merges:
            yield "which rows are late for their session"
        if self.allowed_lateness > 0:
            yield "what late rows fire, one by one"
