"""Validation of rows by their own values: usable timestamps, durations and gaps.

Whether an accepted row is late depends on the watermark; operators decide that.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.operators.columns.numeric import NumericColumn, to_numeric
from gpu_windows.operators.columns.session_gaps import duration_ticks
from gpu_windows.planning.query import Query
from gpu_windows.vocabulary.windows.row_checks import DurationCheck

Ints = NDArray[np.int64]


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
