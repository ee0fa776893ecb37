"""When days begin in a time zone, from the standard library's `zoneinfo`.

A day begins at the first instant at which clocks show its date or a later one. So one whose
midnight is skipped begins when clocks go forward, one with two midnights at the first of them, and
a date that was skipped altogether begins, and ends, where the next one does.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import numpy as np
from numpy.typing import NDArray

from gpu_windows.errors import InvalidWindowError

Ints = NDArray[np.int64]

#: Ticks of a day of 24 hours.
DAY = 86_400_000_000
#: The first days of the years -200 and 10200: those between them have bounds.
FIRST_DAY, LAST_DAY = -792_576, 3_005_946
#: Clocks followed the sun before the one, and follow rules after the other: nothing else is in the
#: IANA database before 1800 and after 2100. Rules repeat with the calendar, every 400 years.
BEGIN, RULES, CYCLE = -62_091, 47_482, 146_097
_OFFSET = re.compile(r"([+-])(\d{1,2}):(\d{2})")
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a time on a clock
_SECOND = timedelta(seconds=1)
_MAX_OFFSET = 18 * 60


def check_time_zone(name: object) -> tzinfo:
    """Return a time zone.

    Parameters
    ----------
    name : str
        Of the IANA database, or an offset from UTC, such as ``"+02:00"``.

    Raises
    ------
    InvalidWindowError
        If it is neither.
    """
    if isinstance(name, str):
        if offset := _OFFSET.fullmatch(name):
            minutes = 60 * int(offset[2]) + int(offset[3])
            if minutes <= _MAX_OFFSET and int(offset[3]) < 60:
                return timezone(timedelta(minutes=-minutes if offset[1] == "-" else minutes))
        else:
            try:
                return ZoneInfo(name)
            except (ZoneInfoNotFoundError, ValueError, OSError):
                pass
    rule = "time_zone is a name of the IANA database, as 'Europe/Zurich', or an offset, as '+02:00'"
    raise InvalidWindowError(f"{rule}{_hint(name)}", value=repr(name))


def _hint(name: object) -> str:
    names = available_timezones()
    if not names:
        return " (this machine has no database: pip install tzdata)"
    by_lower = {each.lower(): each for each in names}
    cities = {each.rpartition("/")[2].lower(): each for each in sorted(names)}
    wanted = str(name).lower().replace(" ", "_")
    near = get_close_matches(wanted, by_lower, 1) or get_close_matches(wanted, cities, 1)
    return f": did you mean {(by_lower | cities)[near[0]]!r}" if near else ""


@lru_cache(maxsize=64)
def day_runs(name: str | None) -> bytes:
    """Return the runs of days that begin 24 hours apart, until rules of clocks repeat.

    Parameters
    ----------
    name : str or None
        See `check_time_zone`; None: of clocks that are never changed.

    Returns
    -------
    bytes
        Of int64[runs, 2]: number (from 1970) and first tick of the first day of each run.
    """
    zone = UTC if name is None else check_time_zone(name)
    if not isinstance(zone, ZoneInfo):
        fixed = zone.utcoffset(None) or timedelta()
        offset = fixed // timedelta(microseconds=1)
        return np.array([[FIRST_DAY, FIRST_DAY * DAY - offset]], np.int64).tobytes()
    days = np.arange(BEGIN, RULES + CYCLE + 1)
    starts = days * DAY - _offsets(zone, days) * 1_000_000
    for index in _irregular(starts):
        starts[index] = _first_instant(zone, int(days[index])) * 1_000_000
    starts = np.maximum.accumulate(starts)
    begins = np.append(0, 1 + np.flatnonzero(np.diff(starts) != DAY))
    runs = np.stack([days[begins], starts[begins]], axis=1)
    runs[0] += (FIRST_DAY - BEGIN) * np.array([1, DAY])
    return runs.tobytes()


def all_day_runs(runs: bytes) -> tuple[Ints, Ints]:
    """Return the runs of `day_runs` until `LAST_DAY`: numbers and first ticks of their days."""
    days, ticks = np.frombuffer(runs, np.int64).reshape(-1, 2).T
    of_rules = days > RULES
    cycles = range(1, 1 + (LAST_DAY - RULES) // CYCLE)
    later = [(days[of_rules] + n * CYCLE, ticks[of_rules] + n * CYCLE * DAY) for n in cycles]
    all_days = np.concatenate([days, *(each for each, _ in later)])
    all_ticks = np.concatenate([ticks, *(each for _, each in later)])
    return all_days[all_days <= LAST_DAY], all_ticks[all_days <= LAST_DAY]


def _offsets(zone: ZoneInfo, days: Ints) -> Ints:
    """Return the offsets from UTC at midnights, in seconds; at a double one, of the first."""
    midnight, day = _EPOCH + timedelta(days=int(days[0])), timedelta(days=1)
    offsets = []
    for _ in days:
        offset = zone.utcoffset(midnight)
        offsets.append(0 if offset is None else offset // _SECOND)
        midnight += day
    return np.array(offsets, np.int64)


def _irregular(starts: Ints) -> Ints:
    """Return the days before or after which clocks were changed."""
    changes = np.flatnonzero(np.diff(starts) != DAY)
    return np.unique(np.concatenate([changes, changes + 1]))


def _first_instant(zone: ZoneInfo, day: int) -> int:
    """Return the first instant at which clocks show a day, in seconds from 1970."""
    midnight = _EPOCH + timedelta(days=day)
    before, after = (zone.utcoffset(midnight.replace(fold=fold)) for fold in (0, 1))
    assert before is not None
    assert after is not None
    high = (midnight - before - _EPOCH) // _SECOND
    if before >= after:  # midnight is there, maybe twice
        return high
    low = (midnight - after - _EPOCH) // _SECOND  # skipped: clocks are changed after this instant
    while low + 1 < high:
        middle = (low + high) // 2
        instant = _EPOCH.replace(tzinfo=UTC) + timedelta(seconds=middle)
        if instant.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high
