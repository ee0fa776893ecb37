"""Rows for pictures of firings."""

from __future__ import annotations

import pyarrow as pa

SECOND = 1_000_000


def sample() -> pa.Table:
    """Two keys; rows up to 10 seconds late, one without a timestamp."""
    seconds = [2, 9, 5, 12, 14, 8, 21, 11, 26, 3, 19, 33, None]
    ticks = [None if s is None else s * SECOND for s in seconds]
    return pa.table(
        {
            "sensor": ["a", "a", "b", "a", "b", "a", "a", "a", "b", "a", "a", "b", "b"],
            "ts": pa.array(ticks).cast(pa.timestamp("us", "UTC")),
            "value": [float(i) for i in range(len(seconds))],
        }
    )
