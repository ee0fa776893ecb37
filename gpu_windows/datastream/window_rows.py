"""Rows with the windows that they are in, a row for each window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from gpu_windows.datastream.columns import as_list
from gpu_windows.datastream.two_inputs import function_outputs
from gpu_windows.datastream.unkeyed import UnkeyedStream
from gpu_windows.errors import QueryError
from gpu_windows.functions.window_rows import (
    WINDOW_COLUMNS,
    InWindows,
    MergedWindowRows,
    WindowRows,
)
from gpu_windows.planning.own_columns import NO_TIME, SPREAD
from gpu_windows.planning.validation import check_calendar, check_distinct, require_column
from gpu_windows.runners.outputs import Input, KeyedInput, Outputs
from gpu_windows.vocabulary.windows import (
    CalendarWindows,
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    SlicedAssigner,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)

_SLICED = (
    TumblingEventTimeWindows,
    SlidingEventTimeWindows,
    CumulativeEventTimeWindows,
    CalendarWindows,
)
_NAMES = "rows in windows have window_start, window_end and window_time: rename the columns"


def with_windows(
    stream: UnkeyedStream,
    assigner: WindowAssigner,
    columns: Sequence[str] | None,
    partition_by: Sequence[str],
    arrival_order: Sequence[str],
    options: Mapping[str, Any],
) -> Outputs:
    """Return the outputs of `TimedStream.with_windows`."""
    timed = stream._rows
    if timed.time == NO_TIME:
        rule = "rows in windows need a time: say event_time(column, watermarks)"
        raise QueryError(rule, value=type(assigner).__name__)
    names = timed.source.user_columns if columns is None else as_list(columns)
    partition_by, arrival_order = as_list(partition_by), as_list(arrival_order)
    check_distinct(names, "columns have different names")
    check_distinct((*names, *WINDOW_COLUMNS), _NAMES)
    if not isinstance(assigner, (*_SLICED, EventTimeSessionWindows)) or not assigner.is_event_time:
        rule = "rows are put into tumbling, sliding, cumulative, calendar or session windows"
        raise QueryError(rule, value=type(assigner).__name__)
    seen = tuple(names) or (timed.time,)  # a table without columns has no length
    for name in seen:
        require_column(timed.source.schema, name)
    if isinstance(assigner, EventTimeSessionWindows):
        outputs = _in_sessions(stream, assigner, seen, partition_by, arrival_order, options)
    else:
        assert isinstance(assigner, SlicedAssigner)
        if isinstance(assigner, CalendarWindows):
            check_calendar(assigner, timed.source.schema.field(timed.time))
        outputs = _in_slices(timed, assigner, seen, partition_by, options)
    return outputs.select(*names, *WINDOW_COLUMNS)


def _in_slices(
    timed: Input,
    assigner: SlicedAssigner,
    names: tuple[str, ...],
    partition_by: Sequence[str],
    options: Mapping[str, Any],
) -> Outputs:
    if partition_by:
        rule = "partition_by is for sessions: other windows do not depend on keys"
        raise QueryError(rule, value=", ".join(partition_by))
    instant = _instant(timed)
    output = pa.schema([*(timed.source.schema.field(n).with_nullable(True) for n in names),
                        *(pa.field(name, instant) for name in WINDOW_COLUMNS)])  # fmt: skip
    source = timed.source.add_spread(SPREAD, timed.time)
    rows = KeyedInput(source, timed.time, timed.watermarks, (SPREAD,))
    process = InWindows(WindowRows(assigner, instant), output, names, names)
    return function_outputs(rows, process, options)


def _in_sessions(
    stream: UnkeyedStream,
    assigner: WindowAssigner,
    names: tuple[str, ...],
    partition_by: Sequence[str],
    arrival_order: Sequence[str],
    options: Mapping[str, Any],
) -> Outputs:
    timed = stream._rows
    instant = _instant(timed)
    rest = [name for name in names if name not in partition_by] or [timed.time]
    fields = (timed.source.schema.field(name).with_nullable(True) for name in rest)
    output = pa.schema([*fields, pa.field(WINDOW_COLUMNS[2], instant)])
    if partition_by:
        windowed = stream.key_by(*partition_by).window(assigner)
    else:
        windowed = stream.window_all(assigner)
    ordered = windowed.arrival_order(*arrival_order).options(**options)
    outputs: Outputs = ordered.with_outputs().process(
        MergedWindowRows(instant), rest, output=output
    )
    return outputs


def _instant(timed: Input) -> pa.DataType:
    """Return the type of times of windows: that of times of rows, in microseconds."""
    dtype = timed.source.schema.field(timed.time).type
    return pa.timestamp("us", dtype.tz) if pa.types.is_timestamp(dtype) else pa.int64()
