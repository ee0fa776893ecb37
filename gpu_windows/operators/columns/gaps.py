"""The gaps of sessions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.errors import InvalidWindowError
from gpu_windows.operators.columns.lanes import Lane, one_chunk, to_lane
from gpu_windows.rules import LONG_MAX
from gpu_windows.windows import EventTimeSessionWindows


def session_ends(
    assigner: EventTimeSessionWindows, starts: NDArray[np.int64], table: pa.Table
) -> NDArray[np.int64]:
    """Return the end of every row's own session.

    Raises
    ------
    InvalidWindowError
        If the gap of a row is null or not positive.
    """
    gaps: Any = assigner.gap
    if assigner.gap_column is not None:
        column = one_chunk(table.column(assigner.gap_column))
        if pa.types.is_duration(column.type):
            column = column.cast(pa.duration("us")).cast(pa.int64())
        lane = to_lane(column)
        _check_gaps(lane, assigner.gap_column)
        gaps = lane.values
    return np.where(starts > LONG_MAX - gaps, LONG_MAX, starts + gaps)


def _check_gaps(gaps: Lane, column: str) -> None:
    bad = gaps.values <= 0
    if len(gaps.valid):
        bad |= ~gaps.valid
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        null = len(gaps.valid) > 0 and not gaps.valid[at]
        rule = "the gap of a session must be positive"
        raise InvalidWindowError(rule, value=None if null else int(gaps.values[at]), column=column)
