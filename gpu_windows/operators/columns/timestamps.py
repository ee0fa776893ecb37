"""Whether a row has a usable place in time, where that is all that is asked of its timestamp."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.operators.columns.lanes import Lane, to_lane
from gpu_windows.query.base import Query


def status_of_rows(query: Query, rows: pa.Table) -> NDArray[np.int8]:
    """Return ACCEPTED, NULL or OUT_OF_RANGE for every row; where no row needs a time, ACCEPTED."""
    if not query.needs_time:
        return np.full(len(rows), rules.ACCEPTED, np.int8)
    return status_of_times(to_lane(rows.column(query.time)), query.usable_ticks)


def status_of_times(times: Lane, usable: tuple[int, int]) -> NDArray[np.int8]:
    """Return ACCEPTED, NULL or OUT_OF_RANGE (`gpu_windows.rules`) for every timestamp.

    ``usable``: the first and the last tick that windows can hold.
    """
    low, high = usable
    inside = (times.values >= low) & (times.values <= high)
    status = np.where(inside, rules.ACCEPTED, rules.OUT_OF_RANGE).astype(np.int8)
    if len(times.valid):
        status[~times.valid] = rules.NULL
    return status
