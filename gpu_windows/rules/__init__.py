"""Flink's window arithmetic and the primitive partials, each written once.

Every function here is plain scalar Python that runs under CPython, compiles with
``numba.njit`` and with ``numba.cuda`` (`gpu_windows.kernels` does the compiling).
Times are int64 ticks. ``//`` and ``%`` round towards minus infinity under all three,
which is Flink's ``floorMod`` for negative times. What is made of many rules is in
`gpu_windows.rules.window_operator`.

Where Spark makes partials, `slice_of` is called with an object that writes SQL
(`gpu_windows.spark_glue.batch.partials`): so that rule has no second version. The window operator
has one, on purpose: the reference (`gpu_windows.operators.row_at_a_time.operator`) is that rule
over objects.
"""

from __future__ import annotations

from gpu_windows.rules import (
    division,
    fixed_point,
    joins,
    lateness,
    partials,
    slicing,
)
from gpu_windows.rules.division import Reciprocal, reciprocal
from gpu_windows.rules.joins import (
    AFTER,
    BEFORE,
    EITHER,
    VERSIONED_TICKS,
    add_saturating,
    end_of_version,
    oldest_version,
    sql_clock,
    waits,
)
from gpu_windows.rules.lateness import (
    ACCEPTED,
    GAP,
    INVALID_SESSION_GAP,
    LATE,
    NULL,
    OUT_OF_RANGE,
    REASONS,
    cleanup_time,
    first_tick_on_time,
    is_late,
)
from gpu_windows.rules.partials import (
    ADD,
    BLOCK,
    IDENTITIES,
    MAX,
    MIN,
    high_half,
    low_half,
)
from gpu_windows.rules.slicing import (
    BOTH,
    NEVER,
    PREFIX,
    SUFFIX,
    TICKS,
    Grid,
    Units,
    cumulative_grid,
    earliest_unit,
    end_of,
    find_run,
    first_slice,
    first_window,
    interval_start,
    is_gap,
    is_repeated,
    last_complete_unit,
    last_slice,
    last_window,
    last_window_fired,
    latest_unit,
    slice_of,
    slice_start,
    sliding_grid,
    start_of,
    tick_of,
    tick_within,
    unit_of,
)
from gpu_windows.rules.ticks import LONG_MAX, LONG_MIN, SENTINELS

#: The modules whose functions kernels compile.
COMPILED = (division, fixed_point, joins, lateness, partials, slicing)

__all__ = [
    "ACCEPTED",
    "ADD",
    "AFTER",
    "BEFORE",
    "BLOCK",
    "BOTH",
    "EITHER",
    "GAP",
    "IDENTITIES",
    "INVALID_SESSION_GAP",
    "LATE",
    "LONG_MAX",
    "LONG_MIN",
    "MAX",
    "MIN",
    "NEVER",
    "NULL",
    "OUT_OF_RANGE",
    "PREFIX",
    "REASONS",
    "SENTINELS",
    "SUFFIX",
    "TICKS",
    "VERSIONED_TICKS",
    "Grid",
    "Reciprocal",
    "Units",
    "add_saturating",
    "cleanup_time",
    "cumulative_grid",
    "earliest_unit",
    "end_of",
    "end_of_version",
    "find_run",
    "first_slice",
    "first_tick_on_time",
    "first_window",
    "high_half",
    "interval_start",
    "is_gap",
    "is_late",
    "is_repeated",
    "last_complete_unit",
    "last_slice",
    "last_window",
    "last_window_fired",
    "latest_unit",
    "low_half",
    "oldest_version",
    "reciprocal",
    "slice_of",
    "slice_start",
    "sliding_grid",
    "sql_clock",
    "start_of",
    "tick_of",
    "tick_within",
    "unit_of",
    "waits",
]
