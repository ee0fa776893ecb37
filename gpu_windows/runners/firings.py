"""Traces a query over a few rows: which windows fire at which step, over which rows.

`gpu_windows.plot_firings` draws it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from gpu_windows.column_types.logical import logical_table
from gpu_windows.errors import QueryError, UnsupportedQueryError
from gpu_windows.functions.window import Collect
from gpu_windows.operators.base import Emission, Operator
from gpu_windows.operators.build import build_operator
from gpu_windows.operators.keyed.values import key_part
from gpu_windows.planning.kinds.window import WINDOW_END, WINDOW_START, WindowQuery
from gpu_windows.planning.own_columns import REASON
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.runners.local import to_ticks, without_markers
from gpu_windows.runners.outputs import Outputs
from gpu_windows.vocabulary.evictors import Element, Evictor, EvictorContext
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.rich_functions import RuntimeContext
from gpu_windows.vocabulary.triggers.base import AnyWindow

#: Name of the column that numbers the rows of a sample.
_NUMBER = "number of the row"

Key = tuple[object, ...]


@dataclass(frozen=True)
class SampleRow:
    """A row of a sample.

    Parameters
    ----------
    number : int
        Its place in the sample, which is its order of arrival.
    key : tuple, optional
        None for a row that only carries a watermark.
    timestamp : int, optional
        In ticks.
    rejected : str, optional
        Why it is in no window: one of `gpu_windows.rules.REASONS`.
    """

    number: int
    key: Key | None
    timestamp: int | None
    rejected: str | None = None


@dataclass(frozen=True)
class WindowFiring:
    """A firing of a window.

    Parameters
    ----------
    step : int
        After this row came; the number of rows stands for the end of the input.
    key : tuple
        Its values, in order of the key columns.
    start, end : int, optional
        In ticks; None for the global window.
    timing : {"early", "on_time", "late"}
        When it fired, seen from the window's end.
    rows : tuple of int
        Numbers of the rows that the function saw.
    """

    step: int
    key: Key
    start: int | None
    end: int | None
    timing: str
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Eviction:
    """A row that an evictor dropped from a window, at a step."""

    step: int
    row: int


@dataclass
class Trace:
    """Trace of a query over a sample.

    Parameters
    ----------
    rows : list of SampleRow
        In order of arrival.
    watermarks : list of int
        After each row, in ticks; LONG_MIN before the first.
    firings : list of WindowFiring
        In the order in which windows fired.
    evictions : list of Eviction
        Rows that an evictor took out, in that order too.
    """

    rows: list[SampleRow] = field(default_factory=list)
    watermarks: list[int] = field(default_factory=list)
    firings: list[WindowFiring] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)


class _RecordingEvictor(Evictor):
    """An evictor that records the rows it evicts."""

    def __init__(self, inner: Evictor, trace: Trace) -> None:
        self._inner = inner
        self._trace = trace

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self._inner.columns, _NUMBER)

    @property
    def side_outputs(self) -> Mapping[str, pa.Schema]:
        return self._inner.side_outputs

    def open(self, context: RuntimeContext) -> None:
        self._inner.open(context)

    def close(self) -> None:
        self._inner.close()

    def evict_before(
        self, elements: Sequence[Element], window: AnyWindow, context: EvictorContext
    ) -> Sequence[Element]:
        return self._note(elements, self._inner.evict_before(elements, window, context))

    def evict_after(
        self, elements: Sequence[Element], window: AnyWindow, context: EvictorContext
    ) -> Sequence[Element]:
        return self._note(elements, self._inner.evict_after(elements, window, context))

    def _note(self, elements: Sequence[Element], remaining: Sequence[Element]) -> Sequence[Element]:
        stays = {element.place for element in remaining}
        gone = [int(e.row[_NUMBER]) for e in elements if e.place not in stays]  # type: ignore[call-overload]
        step = len(self._trace.watermarks)
        self._trace.evictions += [Eviction(step, number) for number in gone]
        return remaining


def trace_firings(outputs: Outputs, sample: pa.Table) -> Trace:
    """Run a query over a few rows, one after the other, with a watermark after each.

    That is what a stream does. On a bounded input the watermark would move at the end only, and no
    row would be late.

    Parameters
    ----------
    outputs : Outputs
        Of the query, such as ``windowed.with_outputs().aggregate(n=gw.count())``; its function
        does not matter.
    sample : pyarrow.Table
        Rows with the query's columns, in order of arrival.

    Raises
    ------
    UnsupportedQueryError
        If the query waits for processing time, which a table has not, or if rows have no time or
        no key.
    QueryError
        If these are no outputs, or the sample is no Arrow table.

    Examples
    --------
    >>> sample = pa.table({"user": ["ann"] * 3, "ts": [0, 70_000_000, 5_000_000]})
    >>> timed = gw.stream(sample).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> minutes = timed.key_by("user").window(gw.TumblingEventTimeWindows.of("1 minute"))
    >>> trace = gw.trace_firings(minutes.with_outputs().aggregate(n=gw.count()), sample)
    >>> [(firing.timing, firing.rows) for firing in trace.firings], trace.rows[2].rejected
    ([('on_time', (0,)), ('on_time', (1,))], 'late')
    """
    _check(outputs, sample)
    query = outputs.plan.query
    if not isinstance(query, WindowQuery):
        rule = "plot_firings shows windows, and such a query has none"
        raise UnsupportedQueryError(rule, value=outputs.plan.strategy.value)
    if not (query.has_time and query.has_key):
        rule = "plot_firings shows rows that were given a time and a key"
        raise UnsupportedQueryError(rule, value=query.assigner.describe())
    if query.uses_processing_time:
        rule = "plot_firings shows event time: a table has no processing time"
        raise UnsupportedQueryError(rule, value=query.trigger.describe())
    trace, rows = Trace(), _number_rows(sample, query)
    with closing(
        build_operator(plan(_collecting_query(query, trace), bounded=False), trace=True)
    ) as operator:
        _follow(trace, rows, query, operator, outputs.plan.marker_columns)
    return trace


def _follow(
    trace: Trace,
    rows: pa.Table,
    query: WindowQuery,
    operator: Operator,
    marked: tuple[str, ...],
) -> None:
    """Run an operator over rows, one after the other, and record what it does."""
    watermark = LONG_MIN
    for number, row in enumerate(rows.to_pylist()):
        batch = without_markers(rows.slice(number, 1), query.watermark_column, marked)
        reason = _note(trace, number, query, operator.process(batch))
        key = _key(row, query) if len(batch) else None
        trace.rows.append(SampleRow(number, key, row[query.time], reason))
        watermark = max(watermark, _carried_watermark(row, query))
        _note(trace, number, query, operator.advance_watermark(watermark))
        trace.watermarks.append(watermark)
    if not query.fires_without_end:
        _note(trace, len(rows), query, operator.advance_watermark(LONG_MAX))


def _check(outputs: object, sample: object) -> None:
    if not (isinstance(outputs, Outputs) and isinstance(sample, pa.Table)):
        rule = (
            "firings are shown of outputs of windows over a pyarrow.Table, such as "
            "windowed.with_outputs().aggregate(n=gw.count())"
        )
        raise QueryError(rule, value=f"{type(outputs).__name__}, {type(sample).__name__}")


def _carried_watermark(row: Mapping[str, Any], query: WindowQuery) -> int:
    """Return the watermark after a row."""
    if query.watermark_column is not None:
        carried = row[query.watermark_column]
        return LONG_MIN if carried is None else carried
    time = row[query.time]
    return LONG_MIN if time is None else query.watermarks.watermark_of(np.array([time]))


def _number_rows(sample: pa.Table, query: WindowQuery) -> pa.Table:
    """Return the rows with their number, and times and watermarks in ticks."""
    times = {name for name in (query.time, query.watermark_column) if name is not None}
    rows = logical_table(sample, clipped=times)
    for name in times:
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, name, to_ticks(rows.column(at), name))
    return rows.append_column(_NUMBER, pa.array(np.arange(len(rows))))


def _collecting_query(query: WindowQuery, trace: Trace) -> WindowQuery:
    """Return the query on the reference operator, with numbers of rows as its results."""
    return replace(
        query,
        schema=query.schema.append(pa.field(_NUMBER, pa.int64())),
        function=Collect((_NUMBER,)),
        grouping=None,  # windows of all keys are shown
        gaps=None,  # windows without rows do not fire
        evictor=None if query.evictor is None else _RecordingEvictor(query.evictor, trace),
        firing_columns=True,
        changes=False,
        options=Options(engine="reference"),
    )


def _key(row: Mapping[str, Any], query: WindowQuery) -> Key:
    """Return the key of a row or a result, so that equal keys are equal: all NaN are one."""
    return tuple(key_part(row[name]) for name in query.keys)


def _note(trace: Trace, step: int, query: WindowQuery, emissions: Iterator[Emission]) -> str | None:
    """Record firings in a trace; return why the row was rejected, or None."""
    reason: str | None = None
    for emission in emissions:
        for row in emission.results.to_pylist():
            key = _key(row, query)
            bounds, rows = (row[WINDOW_START], row[WINDOW_END]), tuple(row[_NUMBER])
            trace.firings.append(WindowFiring(step, key, *bounds, row["timing"], rows))
        for late in emission.late.to_pylist():
            reason = late[REASON]
    return reason
