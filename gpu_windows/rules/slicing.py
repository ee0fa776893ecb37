"""Windows and slices: which a row is in, where they start and end, which windows are made of which.

All in units, by their numbers; a unit is a tick but for windows of a calendar
(`gpu_windows.rules.units`).

Rules of slices are free of branches on their first argument, so that they take NumPy arrays and SQL
expressions too (type `Tick`).
"""

from __future__ import annotations

from typing import NamedTuple

from gpu_windows.rules.division import Reciprocal, floor_divided
from gpu_windows.rules.ticks import Tick
from gpu_windows.rules.units import TICKS, Units, tick_of


class Grid(NamedTuple):
    """The slices of a time-window assigner, all int64, in units.

    Sliding windows (tumbling is ``slide == size``): every slide period is cut at the
    window starts and, where ``remainder`` is not 0, at the window ends: ``per_slide`` (1 or 2)
    slices a period (dividing by it is a shift), ``span`` consecutive slices a window. With
    ``slide > size`` the second slice of a period is the gap between windows. Cumulative
    windows: ``slide`` is the step, ``steps`` slices share one start, and window ``k`` ends with
    slice ``k``.

    Source: pairs of slices, Krishnamurthy et al., "On-the-Fly Sharing for Streamed
    Aggregation" (SIGMOD 2006), which never needs more than two slices a slide where the
    greatest common divisor of size and slide may need thousands: of windows of 1 hour every 7
    minutes and one microsecond each has 17 slices, and would have 3.6 billion.
    """

    slide: int
    size: int
    offset: int
    remainder: int
    per_slide: int
    span: int
    steps: int


def sliding_grid(size: int, slide: int, offset: int) -> Grid:
    """Return the slices of sliding windows; all three in units."""
    remainder = size % slide
    per_slide = 1 if remainder == 0 else 2
    span = per_slide * (size // slide) + (0 if remainder == 0 else 1)
    return Grid(slide, size, offset, remainder, per_slide, span, 0)


def cumulative_grid(max_size: int, step: int, offset: int) -> Grid:
    """Return the slices of cumulative windows; all three in units."""
    steps = max_size // step
    return Grid(step, max_size, offset, 0, 1, steps, steps)


def window_start(ts: int, period: int, offset: int) -> int:
    """Start of the last window that holds ``ts`` (Flink: getWindowStartWithOffset)."""
    return ts - (ts - offset) % period


def slice_of(ts: Tick, grid: Grid) -> Tick:
    """Number of the slice that holds ``ts``.

    Free of branches on ``ts``, so that it can be evaluated on a Spark column too.
    """
    add_saturating = ts - grid.offset
    return slice_in(add_saturating // grid.slide, add_saturating, grid)


def slice_by_reciprocal(ts: int, grid: Grid, slide: Reciprocal) -> int:
    """Return `slice_of` of a row, given the reciprocal of ``grid.slide``; kernels call it."""
    add_saturating = ts - grid.offset
    index: int = slice_in(floor_divided(add_saturating, slide), add_saturating, grid)
    return index


def slice_in(period: Tick, add_saturating: Tick, grid: Grid) -> Tick:
    """Number of the slice ``add_saturating`` ticks after the offset, which is in a slide's period.

    Of two slices a period, the second begins after ``remainder`` ticks; before them the shift by
    63 gives -1, else 0.
    """
    if grid.remainder == 0:
        return period
    return 2 * period + 1 + ((add_saturating - period * grid.slide - grid.remainder) >> 63)


def slice_start(index: Tick, grid: Grid) -> Tick:
    """First unit of slice ``index``; it ends where the next one starts."""
    if grid.remainder == 0:
        return grid.offset + index * grid.slide
    return grid.offset + (index // 2) * grid.slide + (index % 2) * grid.remainder


def is_gap(index: Tick, grid: Grid) -> Tick:
    """Whether slice ``index`` lies between two windows (slide > size)."""
    return (grid.steps == 0 and grid.size < grid.slide) & (index & 1 == 1)


def first_slice(window: Tick, grid: Grid) -> Tick:
    """First slice of window number ``window``."""
    if grid.steps > 0:
        return window - window % grid.steps
    return window * grid.per_slide


def last_slice(window: Tick, grid: Grid) -> Tick:
    """Last slice of window number ``window``."""
    if grid.steps > 0:
        return window
    return first_slice(window, grid) + grid.span - 1


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


def halves_of_range(is_head: bool, in_one_block: bool) -> int:  # noqa: FBT001
    """Say of which scans a range is made: what some consecutive values have of entries.

    Blocks are as long as ranges. ``is_head``: whether the first entry of the range is the first one
    of its block; ``in_one_block``: whether its last entry is in that block, too. See `halves_of`.
    """
    if not in_one_block:
        return BOTH
    return PREFIX if is_head else SUFFIX


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
    """Start of window number ``window``, in units."""
    if grid.steps > 0:
        return grid.offset + (window - window % grid.steps) * grid.slide
    return grid.offset + window * grid.slide


def end_of(window: Tick, grid: Grid) -> Tick:
    """End (exclusive) of window number ``window``, in units."""
    if grid.steps > 0:
        return grid.offset + (window + 1) * grid.slide
    return grid.offset + window * grid.slide + grid.size


def is_repeated(window: Tick, grid: Grid, units: Units) -> Tick:
    """Whether a cumulative window has the bounds of the one before, as its last slice is empty."""
    end = end_of(window, grid)
    return (grid.steps > 0) & (tick_of(end, units) == tick_of(end - grid.slide, units))


def last_window_fired(watermark: int, grid: Grid) -> int:
    """Number of the latest window that has ended once the units up to ``watermark`` have passed."""
    if grid.steps > 0:
        return (watermark + 1 - grid.offset) // grid.slide - 1
    return (watermark + 1 - grid.size - grid.offset) // grid.slide


def earliest_unit(grid: Grid, units: Units = TICKS) -> int:
    """First unit whose windows all are in the table; in ticks, fit int64, slice no sentinel."""
    return units.first + 2 * (grid.size + grid.slide) + abs(grid.offset)


def latest_unit(grid: Grid, units: Units = TICKS) -> int:
    """Last unit whose windows all are in the table; in ticks, fit into int64."""
    return units.last - 2 * (grid.size + grid.slide) - abs(grid.offset)
