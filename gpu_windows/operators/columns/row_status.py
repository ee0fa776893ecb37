"""Validation of rows by their own values: timestamps, durations, gaps and ends of sessions.

Whether an accepted row is late depends on the watermark; operators decide that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.operators.columns.numeric import (
    ALL,
    NumericColumn,
    TypedNumericColumn,
    one_chunk,
    to_numeric,
)
from gpu_windows.planning.query import Query
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.windows import EventTimeSessionWindows
from gpu_windows.vocabulary.windows.base import DurationCheck

Ints = NDArray[np.int64]

#: Ticks in the units of Arrow's durations that are longer than one.
_TICKS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_NANOSECONDS_A_TICK = 1_000


def status_of_rows(query: Query, rows: pa.Table, processing_time: int = 0) -> NDArray[np.int8]:
    """Return the status of every row: ACCEPTED, or why it is rejected (`rules.REASONS`).

    Parameters
    ----------
    query : Query
    rows : pyarrow.Table
        With the time as int64 ticks.
    processing_time : int
        In ticks; windows of processing time begin there.

    Returns
    -------
    int8[n]
        The first rule that a row breaks: that of its time, then those of `Query.row_checks`.
    """
    status = np.full(len(rows), rules.ACCEPTED, np.int8)
    times: Ints | int = 0
    if query.needs_time:
        numeric = to_numeric(rows.column(query.time))
        times, status = numeric.values, status_of_times(numeric, query.usable_ticks)
    for check in query.row_checks:
        is_broken = _is_broken(check, rows, times if check.of_event_time else processing_time)
        status[(status == rules.ACCEPTED) & is_broken] = check.status
    return status


def status_of_times(times: NumericColumn, usable: tuple[int, int]) -> NDArray[np.int8]:
    """Return ACCEPTED, NULL or OUT_OF_RANGE (`gpu_windows.rules`) for every timestamp.

    ``usable``: the first and the last tick that a window can contain.
    """
    (low, high), ticks = usable, times.values
    status = np.full(len(ticks), rules.ACCEPTED, np.int8)
    if len(ticks) and not low <= ticks.min() <= ticks.max() <= high:
        status[(ticks < low) | (ticks > high)] = rules.OUT_OF_RANGE
    if len(times.valid):
        status[~times.valid] = rules.NULL
    return status


def _is_broken(check: DurationCheck, rows: pa.Table, starts: Ints | int) -> NDArray[np.bool_]:
    durations = duration_ticks(rows.column(check.column))
    latest = check.last - np.maximum(durations.values, 1)  # never beyond int64
    is_broken: NDArray[np.bool_] = (durations.values < 1) | (starts > latest)
    if len(durations.valid):
        is_broken |= ~durations.valid
    return is_broken


def session_ends(
    assigner: EventTimeSessionWindows, starts: NDArray[np.int64], table: pa.Table
) -> NDArray[np.int64]:
    """Return the end of the session that each row alone would make.

    Parameters
    ----------
    assigner : EventTimeSessionWindows
    starts : int64[n]
        Where the session of each row begins.
    table : pyarrow.Table
        Rows that `status_of_rows` accepts.
    """
    gaps: Any = assigner.gap
    if assigner.gap_column is not None:
        gaps = duration_ticks(table.column(assigner.gap_column)).values
    longest = int(np.max(gaps, initial=0))
    if int(starts.max(initial=0)) <= LONG_MAX - longest:  # no sum is beyond int64
        ends: NDArray[np.int64] = starts + gaps
        return ends
    return np.where(starts > LONG_MAX - gaps, LONG_MAX, starts + gaps)


def duration_ticks(column: pa.Array | pa.ChunkedArray | TypedNumericColumn) -> NumericColumn:
    """Return durations in ticks: integers as they are, those of Arrow's type exactly.

    Values that are not a whole number of ticks, or exceed int64, are not valid: nothing is rounded.
    """
    array = one_chunk(column)
    if not pa.types.is_duration(array.type):
        return to_numeric(array)
    unit, numbers = array.type.unit, array.cast(pa.int64())
    raw = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False)
    valid = pc.is_valid(numbers).to_numpy(zero_copy_only=False)
    if unit == "ns":
        exact, ticks = raw % _NANOSECONDS_A_TICK == 0, raw // _NANOSECONDS_A_TICK
    else:
        limit = LONG_MAX // _TICKS[unit]
        exact, ticks = (raw >= -limit) & (raw <= limit), np.clip(raw, -limit, limit) * _TICKS[unit]
    valid = valid & exact
    return NumericColumn(ticks, ALL if valid.all() else valid)
