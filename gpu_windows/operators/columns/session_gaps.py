"""Session gaps, fixed or from a column, and the ends of sessions of single rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_windows.operators.columns.numeric import (
    ALL,
    NumericColumn,
    TypedNumericColumn,
    one_chunk,
    to_numeric,
)
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.windows import EventTimeSessionWindows

#: Ticks in the units of Arrow's durations that are longer than one.
_TICKS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_NANOSECONDS_A_TICK = 1_000


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
        Rows that `gpu_windows.operators.columns.row_status.status_of_rows` accepts.
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
