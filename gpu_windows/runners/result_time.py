"""Results of the local runner as rows that have a time."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.planning.own_columns import NO_KEY, SPREAD, ResultTimes
from gpu_windows.planning.validation import check_free


def with_result_time(results: pa.Table, times: ResultTimes) -> pa.Table:
    """Return results with the column ``times.name``."""
    if times.end is not None:
        check_free(results.schema, times.name)
        ends = results.column(times.end)
        ticks = pc.subtract(ends.cast(pa.int64()), 1)
        results = results.append_column(times.name, ticks.cast(ends.type))
    if times.sides:
        sides = [results.column(name) for name in times.sides]
        results = results.drop_columns([*times.sides])
        check_free(results.schema, times.name)
        latest = pc.max_element_wise(*(side.cast(pa.int64()) for side in sides))
        results = results.append_column(times.name, latest.cast(sides[0].type))
    return results.drop_columns([n for n in (NO_KEY, SPREAD) if n in results.column_names])
