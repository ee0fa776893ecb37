"""Windows and slices: which a row is in, where they start and end, which windows are made of which.

All in units, by their numbers: ticks, or the days or months of a calendar, which are not all of one
length. A row is in a unit, slices are runs of units, and a watermark has passed a number of units.
Only `Units` maps them to ticks and back, by a table of the ticks at which units begin.

The table is in runs: within one, units are of one length. Of days, a run ends where clocks change;
of months, every month is one. A run is found by the bucket of ticks that a tick is in, and a few
comparisons: no search.

Rules of slices are free of branches on their first argument, so that they take NumPy arrays and SQL
expressions too (type `Tick`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_windows.rules.division import Reciprocal, floor_divided
from gpu_windows.rules.ticks import LONG_MAX, LONG_MIN, SENTINELS, Tick

# ---- units: ticks, days or months

#: An array of int64, or what is indexed like one.
Table = Any


#: A tick, and a number of a unit, after all in a table; differences from it fit into int64.
NEVER = 1 << 62


class Units(NamedTuple):
    """A table of the ticks at which units begin, in runs of units of one length.

    Parameters
    ----------
    ticks : int64[runs + 1]
        The first tick of each run, ascending; at the end `NEVER`. Of runs that begin at the same
        tick all but the last are empty: a clock skipped those days.
    tick_buckets : int64[buckets]
        The last run that begins up to the first tick of each bucket.
    tick_shift : int
        A bucket is of ``2 ** tick_shift`` ticks; the first one begins with the first run.
    tick_steps : int
        How many runs at most begin within a bucket, other than at its first tick.
    numbers, lasts : int64[runs + 1], int64[runs]
        The numbers of the first and the last unit of each run, ascending; at the end `NEVER`.
    number_buckets, number_shift, number_steps
        The same for numbers of units.
    length : int
        Ticks of a unit in a run; the last one may be longer or shorter. Numbers between two runs
        are of empty units at the end of the first. 1: a unit is a tick, and there is no table.
    first, last : int
        The numbers of units that the table has.
    """

    ticks: Table
    tick_buckets: Table
    tick_shift: int
    tick_steps: int
    numbers: Table
    lasts: Table
    number_buckets: Table
    number_shift: int
    number_steps: int
    length: int
    first: int
    last: int


#: The units of windows that are not of a calendar.
TICKS = Units((), (), 0, 0, (), (), (), 0, 0, 1, LONG_MIN + SENTINELS, LONG_MAX)


def find_run(key: Tick, keys: Table, buckets: Table, shift: int, steps: int) -> Tick:
    """Return the last run whose key is not after ``key``, which is in the table."""
    run = buckets[(key - keys[0]) >> shift]
    for _ in range(steps):
        run = run + (keys[run + 1] <= key)
    return run


def unit_of(tick: Tick, units: Units) -> Tick:
    """Return the number of the unit that holds a tick, which is in the table."""
    if units.length == 1:
        return tick
    run = find_run(tick, units.ticks, units.tick_buckets, units.tick_shift, units.tick_steps)
    return unit_in(run, (tick - units.ticks[run]) // units.length, units)


def unit_by_reciprocal(tick: int, units: Units, length: Reciprocal) -> int:
    """Return `unit_of` of a tick, given the reciprocal of ``units.length``; kernels call it."""
    run = find_run(tick, units.ticks, units.tick_buckets, units.tick_shift, units.tick_steps)
    if units.length == NEVER:  # a run is a unit
        return int(units.numbers[run])
    number: int = unit_in(run, floor_divided(tick - units.ticks[run], length), units)
    return number


def unit_in(run: Tick, index: Tick, units: Units) -> Tick:
    """Return the number of a unit of a run, of which the last one may be almost twice as long."""
    number = units.numbers[run] + index
    return number - (number > units.lasts[run])


def tick_of(number: Tick, units: Units) -> Tick:
    """Return the first tick of a unit, given by its number, which is in the table."""
    if units.length == 1:
        return number
    run = find_run(
        number, units.numbers, units.number_buckets, units.number_shift, units.number_steps
    )
    tick = units.ticks[run] + (number - units.numbers[run]) * units.length
    return tick + (units.ticks[run + 1] - tick) * (number > units.lasts[run])


def tick_within(number: int, units: Units) -> int:
    """Return the first tick of a unit; of one that is not in the table, that of the nearest."""
    if units.length == 1:
        return number
    return int(tick_of(min(max(number, units.first), units.last), units))


def last_complete_unit(watermark: int, units: Units) -> int:
    """Return the last unit that has ended with a watermark; LONG_MAX if all have."""
    if units.length == 1 or watermark == LONG_MAX:
        return watermark
    low, high = tick_of(units.first, units), tick_of(units.last, units)
    return int(unit_of(min(max(watermark + 1, int(low)), int(high)), units)) - 1


# ---- slices, and the windows that are made of them


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
