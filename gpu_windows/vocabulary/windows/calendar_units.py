"""The days and months of a time zone, as units of slices (`gpu_windows.rules.slicing`)."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from gpu_windows.rules import NEVER, Units, tick_of
from gpu_windows.vocabulary.windows.zones import (
    BEGIN,
    CYCLE,
    DAY,
    FIRST_DAY,
    LAST_DAY,
    RULES,
    Ints,
    all_day_runs,
)

CalendarUnit = Literal["day", "month", "day of month"]

#: Every month has numbers for so many days; those that it lacks are empty, at its end.
DAYS_OF_MONTH = 31
#: A bucket has at most one run, unless that took more buckets than these.
_MAX_BUCKETS = 1 << 18


@lru_cache(maxsize=16)
def calendar_units(unit: CalendarUnit, runs: bytes) -> Units:
    """Return units of a zone, numbered from 1970-01-01 on.

    Parameters
    ----------
    unit : {"day", "month", "day of month"}
        Days of months have numbers that are `DAYS_OF_MONTH` apart from one month to the next.
    runs : bytes
        See `gpu_windows.vocabulary.windows.zones.day_runs`.
    """
    numbers, ticks = all_day_runs(runs)
    days = units_of_runs(numbers, ticks, np.append(numbers[1:], LAST_DAY + 1) - 1, DAY)
    if unit == "day":
        return days
    first, last = (np.datetime64(day, "D").astype("datetime64[M]") for day in (FIRST_DAY, LAST_DAY))
    months = np.arange(first, last + 1)
    if unit == "month":
        starts = months.astype("datetime64[D]").astype(np.int64)
        months = months.astype(np.int64)
        return units_of_runs(months, tick_of(starts, days), months, NEVER)
    begins = np.union1d(months.astype("datetime64[D]").astype(np.int64), numbers)
    ends = np.append(begins[1:], LAST_DAY + 1) - 1
    return units_of_runs(_day_of_month(begins), tick_of(begins, days), _day_of_month(ends), DAY)


class ShownDays(NamedTuple):
    """Days by what clocks show: a tick and its shift, divided by `DAY`, are the number of its day.

    Of 1,100 years. Days repeat every `CYCLE`: later ones the last cycle, earlier ones the first.

    Parameters
    ----------
    begins : int64[pieces + 1]
        The ticks at which shifts change, ascending; at the end `NEVER`.
    shifts : int64[pieces]
    buckets : int64[buckets]
        See `gpu_windows.rules.slicing.Units`.
    bucket_shift, bucket_steps : int
    end : int
        The first tick after these days.
    """

    begins: Ints
    shifts: Ints
    buckets: Ints
    bucket_shift: int
    bucket_steps: int
    end: int


@lru_cache(maxsize=16)
def shown_days(runs: bytes) -> ShownDays:
    """Return the days of a zone from which all others follow.

    Parameters
    ----------
    runs : bytes
        See `gpu_windows.vocabulary.windows.zones.day_runs`.
    """
    numbers, ticks = np.frombuffer(runs, np.int64).reshape(-1, 2).T.copy()
    skipped = BEGIN - CYCLE - numbers[0]
    numbers[0] += skipped
    ticks[0] += skipped * DAY
    end = int(ticks[-1] + (RULES + CYCLE + 1 - numbers[-1]) * DAY)
    # The last day of a run may be longer than 24 hours: its rest has the shift of the next run.
    last_days = ticks[:-1] + (np.diff(numbers) - 1) * DAY
    begins = np.append(ticks[0], np.minimum(ticks[1:], last_days + DAY))
    table = np.append(begins, NEVER)
    return ShownDays(table, numbers * DAY - ticks, *_buckets(begins, end), end)


def _day_of_month(days: Ints) -> Ints:
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    numbers: Ints = months.astype(np.int64) * DAYS_OF_MONTH + (dates - months).astype(np.int64)
    return numbers


def units_of_runs(numbers: Ints, ticks: Ints, lasts: Ints, length: int) -> Units:
    """Return units, given the first one of each run, its first tick, and the last one.

    Parameters
    ----------
    numbers, ticks, lasts : int64[runs]
        Ascending; ``ticks`` may have equal ones, of which only the last has ticks.
    length : int
        Ticks of a unit in a run but for the last one; `NEVER` if each run is a unit.
    """
    last = int(lasts[-1])
    by_tick = _buckets(ticks, int(ticks[-1]) + (last - int(numbers[-1])) * length)
    by_number = _buckets(numbers, last)
    end = np.array([NEVER])
    return Units(
        np.append(ticks, end), *by_tick, np.append(numbers, end), lasts, *by_number, length,
        int(numbers[0]), last,
    )  # fmt: skip


def _buckets(keys: Ints, last: int) -> tuple[Ints, int, int]:
    """Return the last run up to the first key of each bucket, their shift, and their steps."""
    span = last - int(keys[0])
    for shift in range(span.bit_length(), -1, -1):
        begins = int(keys[0]) + (np.arange((span >> shift) + 1) << shift)
        runs = np.searchsorted(keys, begins, "right") - 1
        ends = np.searchsorted(keys, begins + ((1 << shift) - 1), "right") - 1
        steps = int((ends - runs).max())
        if steps <= 1 or 2 * len(begins) > _MAX_BUCKETS:
            break
    return runs.astype(np.int64), shift, steps
