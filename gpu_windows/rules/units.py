"""Units of slices: ticks, or the days or months of a calendar, which are not all of one length.

A row is in a unit, slices are runs of units, and a watermark has passed a number of units: all else
about slices is arithmetic on numbers of units (`gpu_windows.rules.slicing`). Only here are they
mapped to ticks and back, by a table of the ticks at which units begin.

The table is in runs: within one, units are of one length. Of days, a run ends where clocks change;
of months, every month is one. A run is found by the bucket of ticks that a tick is in, and a few
comparisons: no search, and free of branches on the first argument (type `Tick`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_windows.rules.division import Reciprocal, floor_divided
from gpu_windows.rules.ticks import LONG_MAX, LONG_MIN, SENTINELS, Tick

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
