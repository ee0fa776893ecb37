"""Flink's window arithmetic and the primitive partials, each written once.

Every function here is plain scalar Python that runs under CPython, compiles with
``numba.njit`` and with ``numba.cuda`` (`gpu_windows.kernels` does the compiling).
Times are int64 ticks. ``//`` and ``%`` round towards minus infinity under all three,
which is Flink's ``floorMod`` for negative times. Rules of slices are free of branches on their
first argument, so that they take NumPy arrays and SQL expressions too (type `Tick`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

#: A scalar, or what behaves like one: an array, an SQL expression.
Tick = Any

LONG_MIN = -(2**63)
LONG_MAX = 2**63 - 1

#: Numbers at the low end of int64 that no slice has; they mark what is not a slice.
SENTINELS = 16


class Grid(NamedTuple):
    """The slices of a time-window assigner, all int64.

    Sliding windows (tumbling is ``slide == size``): every slide period is cut at the
    window starts and, where ``remainder`` is not 0, at the window ends: ``per_slide`` (1 or 2)
    slices a period (dividing by it is a shift), ``span`` consecutive slices a window. With
    ``slide > size`` the second slice of a period is the gap between windows. Cumulative
    windows: ``slide`` is the step, ``steps`` slices share one start, and window ``k`` ends with
    slice ``k``.

    Source: pairs of slices, Krishnamurthy et al., "On-the-Fly Sharing for Streamed
    Aggregation" (SIGMOD 2006), which never needs more than two slices a slide where the
    greatest common divisor of size and slide may need thousands.
    """

    slide: int
    size: int
    offset: int
    remainder: int
    per_slide: int
    span: int
    steps: int


def sliding_grid(size: int, slide: int, offset: int) -> Grid:
    """Return the slices of sliding windows; all three in ticks."""
    remainder = size % slide
    per_slide = 1 if remainder == 0 else 2
    span = per_slide * (size // slide) + (0 if remainder == 0 else 1)
    return Grid(slide, size, offset, remainder, per_slide, span, 0)


def cumulative_grid(max_size: int, step: int, offset: int) -> Grid:
    """Return the slices of cumulative windows; all three in ticks."""
    steps = max_size // step
    return Grid(step, max_size, offset, 0, 1, steps, steps)


# ---- windows and slices (compiled)


def window_start(ts: int, period: int, offset: int) -> int:
    """Start of the last window that holds ``ts`` (Flink: getWindowStartWithOffset)."""
    return ts - (ts - offset) % period


def slice_of(ts: Tick, grid: Grid) -> Tick:
    """Number of the slice that holds ``ts``.

    Free of branches on ``ts``, so that it can be evaluated on a Spark column too.
    """
    shifted = ts - grid.offset
    period = shifted // grid.slide
    if grid.remainder == 0:
        return period
    second = (shifted % grid.slide + grid.slide - grid.remainder) // grid.slide
    return 2 * period + second


def slice_start(index: Tick, grid: Grid) -> Tick:
    """First tick of slice ``index``; it ends where the next one starts."""
    if grid.remainder == 0:
        return grid.offset + index * grid.slide
    return grid.offset + (index // 2) * grid.slide + (index % 2) * grid.remainder


def is_gap(index: Tick, grid: Grid) -> Tick:
    """Whether slice ``index`` lies between two windows (slide > size)."""
    return (grid.steps == 0 and grid.size < grid.slide) & (index % 2 == 1)


def first_slice(window: Tick, grid: Grid) -> Tick:
    """First slice of window number ``window``."""
    if grid.steps > 0:
        return window - window % grid.steps
    return window * grid.per_slide


def interval_start(ts: int, interval: int) -> int:
    """Return ``ts - ts % interval`` with Java's ``%``, which rounds towards zero.

    Continuous triggers count their intervals from there.
    """
    rest = ts % interval
    return ts - rest if ts >= 0 or rest == 0 else ts + (interval - rest)


PREFIX = 0
SUFFIX = 1
BOTH = 2


def same_block(left: int, right: int, grid: Grid) -> bool:
    """Whether two slices lie in one block of ``span`` slices (see the combine kernels)."""
    return left // grid.span == right // grid.span


def halves_of(window: int, left: int, right: int, grid: Grid) -> int:
    """Say of which scans a window is made whose first and last non-empty slices are given.

    PREFIX: the scan of a block from its start up to ``right``. SUFFIX: the scan of a block from
    ``left`` to its end. BOTH: the end of one block and the start of the next.
    """
    edge = first_slice(window, grid)
    if edge % grid.span == 0 or not same_block(edge, left, grid):
        return PREFIX
    return SUFFIX if same_block(left, right, grid) else BOTH


def first_window(index: Tick, grid: Grid) -> Tick:
    """Number of the earliest window that holds slice ``index``."""
    if grid.steps > 0:
        return index
    return -((grid.span - 1 - index) >> (grid.per_slide - 1))


def last_window(index: Tick, grid: Grid) -> Tick:
    """Number of the latest window that holds slice ``index``."""
    if grid.steps > 0:
        return index - index % grid.steps + grid.steps - 1
    return index >> (grid.per_slide - 1)


def last_window_before(index: Tick, grid: Grid) -> Tick:
    """Number of the latest window that ends before slice ``index`` begins."""
    if grid.steps > 0:
        return index - 1
    return (index - grid.span) >> (grid.per_slide - 1)


def start_of(window: Tick, grid: Grid) -> Tick:
    """Start of window number ``window``, in ticks."""
    if grid.steps > 0:
        return grid.offset + (window - window % grid.steps) * grid.slide
    return grid.offset + window * grid.slide


def end_of(window: Tick, grid: Grid) -> Tick:
    """End (exclusive) of window number ``window``, in ticks."""
    if grid.steps > 0:
        return grid.offset + (window + 1) * grid.slide
    return grid.offset + window * grid.slide + grid.size


def last_window_fired(watermark: int, grid: Grid) -> int:
    """Number of the latest window with ``max_timestamp <= watermark``."""
    if grid.steps > 0:
        return (watermark + 1 - grid.offset) // grid.slide - 1
    return (watermark + 1 - grid.size - grid.offset) // grid.slide


def cleanup_time(max_timestamp: int, lateness: int) -> int:
    """Tick at which a window is dropped: ``max_timestamp + lateness``, or LONG_MAX on overflow."""
    if max_timestamp > LONG_MAX - lateness:
        return LONG_MAX
    return max_timestamp + lateness


def is_late(max_timestamp: int, lateness: int, watermark: int) -> bool:
    """Whether a window is already cleaned up (Flink: isWindowLate)."""
    return cleanup_time(max_timestamp, lateness) <= watermark


# ---- what becomes of a row (compiled)

ACCEPTED = 0
LATE = 1
GAP = 2
OUT_OF_RANGE = 3
NULL = 4


def status_of(ts: int, index: int, lateness: int, watermark: int, grid: Grid) -> int:
    """Return ACCEPTED, LATE or GAP for a row of slice ``index``.

    A row is late if its last window is; a row in a gap is late once ``ts + lateness <=
    watermark`` (Flink: isElementLate) and vanishes otherwise, so it is counted as GAP.
    """
    if is_gap(index, grid):
        return LATE if is_late(ts, lateness, watermark) else GAP
    latest = end_of(last_window(index, grid), grid) - 1
    return LATE if is_late(latest, lateness, watermark) else ACCEPTED


def earliest_tick(grid: Grid) -> int:
    """Smallest timestamp whose windows all fit into int64, and whose slice is no sentinel."""
    return LONG_MIN + SENTINELS + 2 * (grid.size + grid.slide) + abs(grid.offset)


def latest_tick(grid: Grid) -> int:
    """Largest timestamp whose windows all fit into int64."""
    return LONG_MAX - 2 * (grid.size + grid.slide) - abs(grid.offset)


# ---- joins in time (compiled)

#: Which row is nearest in time: the latest one up to then, the earliest one from then on, either.
BEFORE = 0
AFTER = 1
EITHER = 2


def shifted(ts: int, by: int) -> int:
    """Return ``ts + by``, or the end of int64 that it would pass."""
    if by > 0:
        return LONG_MAX if ts > LONG_MAX - by else ts + by
    return LONG_MIN if ts < LONG_MIN - by else ts + by


def waits(ts: Tick, reach: int, clock: int) -> Tick:
    """Whether a partner of a row may still come: one that is ``reach`` ticks later, on time."""
    return ts + reach > clock


def sql_clock(watermark: int) -> int:
    """Time of an interval join in Flink's SQL: it begins at the epoch.

    Source: org.apache.flink.table.runtime.operators.join.interval.RowTimeIntervalJoin.
    """
    return max(watermark, 0)


def precedes(code: int, ts: int, other_code: int, other_ts: int) -> bool:
    """Whether (code, ts) sorts before (other_code, other_ts)."""
    return code < other_code or (code == other_code and ts < other_ts)


def is_earlier_nearer(ts: int, earlier: int, later: int) -> bool:
    """Whether ``earlier`` is as near to ``ts`` as ``later``, or nearer.

    Distances may not fit into int64; the middle of the two, rounded down, always does.
    Source: Warren, "Hacker's Delight" (2002), 2-5.
    """
    return ts <= (earlier & later) + ((earlier ^ later) >> 1)


# ---- primitive partials (compiled): combine(left, right), left being the earlier


ADD = 0
LEAST = 1
GREATEST = 2


#: What changes nothing when folded: (how, dtype) to value.
IDENTITIES = {
    (ADD, "int64"): 0,
    (ADD, "float64"): 0.0,
    (LEAST, "int64"): LONG_MAX,
    (LEAST, "float64"): float("nan"),
    (GREATEST, "int64"): LONG_MIN,
    (GREATEST, "float64"): float("-inf"),
}


def fold(how: int, left: float, right: float) -> float:
    """Combine two partials of one kind: ADD, LEAST or GREATEST; int64 or float64.

    NaN is larger than any number, as in Spark SQL.
    """
    if how == ADD:
        return left + right
    if how == LEAST:
        if left != left:  # noqa: PLR0124 - NaN
            return right
        return right if right < left else left
    if left != left:  # noqa: PLR0124 - NaN
        return left
    return left if right <= left else right


def moments(
    n_left: int, mean_left: float, m2_left: float, n_right: int, mean_right: float, m2_right: float
) -> tuple[int, float, float]:
    """Combine two (count, mean, sum of squared deviations).

    Source: Chan, Golub, LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing
    Sample Variances" (1979).
    """
    if n_left == 0:
        return n_right, mean_right, m2_right
    if n_right == 0:
        return n_left, mean_left, m2_left
    total = n_left + n_right
    delta = mean_right - mean_left
    mean = mean_left + delta * (n_right / total)
    m2 = m2_left + m2_right + delta * delta * (n_left * (n_right / total))
    return total, mean, m2


def better(left: int, left_rank: int, right: int, right_rank: int) -> int:
    """Return which of two candidates has the lesser rank, ``left`` if equal."""
    return right if right_rank < left_rank else left


#: The functions that kernels compile, each after those that it calls.
COMPILED = (
    window_start,
    slice_of,
    slice_start,
    is_gap,
    first_slice,
    interval_start,
    same_block,
    halves_of,
    first_window,
    last_window,
    last_window_before,
    start_of,
    end_of,
    last_window_fired,
    cleanup_time,
    is_late,
    status_of,
    shifted,
    precedes,
    is_earlier_nearer,
    fold,
    moments,
    better,
)
