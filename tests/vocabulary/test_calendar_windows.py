"""Windows of the calendar: their bounds by hand and against clocks, and what is refused."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pytest
from numpy.typing import NDArray

import gpu_windows as gw
from gpu_windows import rules
from gpu_windows.errors import InvalidWindowError
from gpu_windows.rules import Units
from gpu_windows.vocabulary.windows.calendar_units import CalendarUnit, calendar_units, shown_days
from gpu_windows.vocabulary.windows.zones import DAY, day_runs

ZURICH = "Europe/Zurich"
HOUR = 3_600_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Zones that skipped midnights, showed them twice, or skipped or repeated whole days.
ODD = (
    "America/Sao_Paulo", "Asia/Beirut", "Pacific/Apia", "Pacific/Kwajalein", "America/Juneau",
    "America/Toronto", "Africa/Casablanca", "Africa/Monrovia", "Asia/Manila", "Antarctica/Troll",
    "Australia/Lord_Howe", "America/Havana", "Asia/Gaza", "Africa/Cairo", ZURICH,
)  # fmt: skip


def ticks(text: str, zone: str = ZURICH) -> int:
    """The instant at which clocks of a zone show a time (first)."""
    return (datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)) - EPOCH) // timedelta(
        microseconds=1
    )


def bounds(at: int, size: str, zone: str | None = ZURICH, **options: Any) -> list[tuple[int, int]]:
    windows = gw.CalendarWindows.of(size, time_zone=zone, **options).assign(at)
    return [(window.start, window.end) for window in windows]


@pytest.mark.parametrize(
    ("size", "at", "start", "end"),
    [
        ("1 day", "2024-03-31T12:00", "2024-03-31", "2024-04-01"),
        ("1 day", "2024-10-27T02:30", "2024-10-27", "2024-10-28"),
        ("1 week", "2025-01-01T00:00", "2024-12-30", "2025-01-06"),
        ("1 week", "2024-12-29T23:59:59.999999", "2024-12-23", "2024-12-30"),
        ("1 month", "2024-02-29T23:59:59.999999", "2024-02-01", "2024-03-01"),
        ("1 month", "1900-02-28T12:00", "1900-02-01", "1900-03-01"),
        ("1 quarter", "2023-12-31T23:00", "2023-10-01", "2024-01-01"),
        ("6 months", "1969-06-30T23:00", "1969-01-01", "1969-07-01"),
        ("1 year", "0001-06-01T00:00", "0001-01-01", "0002-01-01"),
        ("1 year", "9998-12-31T00:00", "9998-01-01", "9999-01-01"),
    ],
)
def test_bounds_are_midnights_of_the_zone(size: str, at: str, start: str, end: str) -> None:
    assert bounds(ticks(at), size) == [(ticks(start), ticks(end))]


def test_days_have_23_and_25_hours() -> None:
    for day, hours in (("2024-03-31", 23), ("2024-10-27", 25), ("2024-10-28", 24)):
        ((start, end),) = bounds(ticks(day), "1 day")
        assert end - start == hours * HOUR, day


@pytest.mark.parametrize(
    ("zone", "before", "first", "hours"),
    [
        ("America/Sao_Paulo", "2018-11-03T23:59", "2018-11-04T01:00", 23),  # no midnight
        ("Asia/Beirut", "2022-03-26T23:59", "2022-03-27T01:00", 23),
        ("America/Sao_Paulo", "2018-02-17T22:00", "2018-02-18T00:00", 24),  # 23:00 twice
        ("America/Havana", "2023-11-04T23:59", "2023-11-05T00:00", 25),  # midnight twice
        ("Pacific/Apia", "2011-12-29T23:59", "2011-12-31T00:00", 24),  # no 30 December
    ],
)
def test_a_day_begins_with_its_first_instant(
    zone: str, before: str, first: str, hours: int
) -> None:
    start = ticks(first, zone)
    assert bounds(start, "1 day", zone) == [(start, start + hours * HOUR)]
    assert bounds(start - 1, "1 day", zone)[0][1] == start
    assert bounds(ticks(before, zone), "1 day", zone)[0][1] == start


def test_weeks_begin_on_any_day() -> None:
    days = "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"
    for number, day in enumerate(days):
        ((start, _),) = bounds(ticks("2024-05-15"), "1 week", week_start=day)
        assert (EPOCH + timedelta(microseconds=start)).astimezone(
            ZoneInfo(ZURICH)
        ).weekday() == number


def test_windows_slide_by_the_calendar() -> None:
    found = bounds(ticks("2024-02-29"), "3 months", slide="1 month")
    wanted = [("2024-02-01", "2024-05-01"), ("2024-01-01", "2024-04-01"),
              ("2023-12-01", "2024-03-01")]  # fmt: skip
    assert found == [(ticks(start), ticks(end)) for start, end in wanted]
    halves = bounds(ticks("2024-02-29"), "3 months", slide="2 months")
    assert halves == [(ticks("2024-01-01"), ticks("2024-04-01"))]


def test_windows_grow_by_days_up_to_a_month() -> None:
    found = bounds(ticks("2023-02-26T12:00"), "1 month", step="1 day")
    ends = "2023-03-01", "2023-02-28", "2023-02-27"
    assert found == [(ticks("2023-02-01"), ticks(end)) for end in ends]
    of_a_year = bounds(ticks("2023-11-26"), "1 year", step="1 month")
    assert [end for _, end in of_a_year] == [ticks("2024-01-01"), ticks("2023-12-01")]


def test_the_last_day_of_a_month_may_have_25_hours() -> None:
    late = ticks("1984-10-01") - 1  # clocks went back on 30 September
    assert bounds(late, "1 month", step="1 day") == [(ticks("1984-09-01"), ticks("1984-10-01"))]


def test_fiscal_years_have_an_offset() -> None:
    found = bounds(ticks("2024-03-31"), "1 year", offset="3 months")
    assert found == [(ticks("2023-04-01"), ticks("2024-04-01"))]


@pytest.mark.parametrize(
    ("offset", "week_start", "start"),
    [
        ("3 days", "monday", "2024-06-06"),
        ("5 days", "sunday", "2024-06-07"),
        ("6 days", "monday", "2024-06-02"),
        ("-6 days", "monday", "2024-06-04"),
        ("6 days", "wednesday", "2024-06-04"),
        ("0 days", "saturday", "2024-06-08"),
    ],
)
def test_weeks_have_any_offset_below_a_week(offset: str, week_start: str, start: str) -> None:
    days = bounds(ticks("2024-06-08"), "1 week", offset=offset, week_start=week_start)
    first = datetime.fromisoformat(start)
    assert days == [(ticks(start), ticks(str(first + timedelta(days=7))))]


def test_times_without_a_zone_are_on_a_clock() -> None:
    found = bounds(ticks("2024-03-31T02:30", "UTC"), "1 day", None)
    assert found == [(ticks("2024-03-31", "UTC"), ticks("2024-04-01", "UTC"))]
    assert found == bounds(ticks("2024-03-31T02:30", "UTC"), "1 day", "+00:00")


def is_first_instant(zone: str, day: datetime, at: int) -> bool:
    """Whether clocks show a date or a later one at a tick, and not before."""
    quarters = range(1, 4 * 26)
    times = [at // 1_000_000, *(at // 1_000_000 - (900 * n if n > 1 else 1) for n in quarters)]
    shown = [
        (EPOCH + timedelta(seconds=time)).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        for time in times
    ]
    return shown[0] >= day > max(shown[1:])


@pytest.mark.thorough
@pytest.mark.parametrize("zone", ODD)
def test_days_begin_when_clocks_say_so(zone: str) -> None:
    units = calendar_units("day", day_runs(zone))
    irregular = units.numbers[1:-1][:400].tolist()
    assert irregular
    for number in irregular:
        for day in (number - 1, number, number + 1):
            date = datetime(1970, 1, 1) + timedelta(days=day)
            assert is_first_instant(zone, date, int(rules.tick_of(day, units))), date


def check_units(units: Units) -> None:
    low, high = (int(rules.unit_of(ticks(f"{year}-01-01"), units)) for year in (1800, 2120))
    near_ends = np.arange(units.first, units.first + 2000), np.arange(units.last - 2000, units.last)
    for numbers in (*near_ends, np.arange(low, high)):
        check_numbers(units, numbers)


def check_numbers(units: Units, numbers: NDArray[np.int64]) -> None:
    starts = rules.tick_of(numbers, units)
    lengths = np.diff(starts)
    assert (lengths >= 0).all()
    some = np.flatnonzero(lengths)
    for ticks_of_units in (starts[some], starts[some + 1] - 1):
        assert (rules.unit_of(ticks_of_units, units) == numbers[some]).all()


@pytest.mark.parametrize("unit", ["day", "month", "day of month"])
@pytest.mark.parametrize("zone", [ZURICH, *(pytest.param(z, marks=pytest.mark.thorough) for z in
                                            ODD if z != ZURICH)])  # fmt: skip
def test_every_tick_is_in_the_unit_that_it_begins(zone: str, unit: CalendarUnit) -> None:
    check_units(calendar_units(unit, day_runs(zone)))


@pytest.mark.parametrize("zone", [ZURICH, *(pytest.param(z, marks=pytest.mark.thorough) for z in
                                            ODD if z != ZURICH)])  # fmt: skip
def test_what_clocks_show_has_the_number_of_the_day(zone: str) -> None:
    runs = day_runs(zone)
    units, days = calendar_units("day", runs), shown_days(runs)
    shifts = np.array([-DAY, -HOUR, -1, 0, 1, HOUR - 1, HOUR, DAY - 1, DAY, DAY + HOUR - 1])
    times = (units.ticks[1:-1, None] + shifts).ravel()
    times = times[(times >= days.begins[0]) & (times < days.end)]
    assert len(times) > 10
    pieces = rules.find_run(times, days.begins, days.buckets, days.bucket_shift, days.bucket_steps)
    assert ((times + days.shifts[pieces]) // DAY == rules.unit_of(times, units)).all()


def test_rules_of_clocks_repeat_after_400_years() -> None:
    units = calendar_units("day", day_runs("America/Sao_Paulo"))
    assert rules.tick_of(units.last, units) > ticks("9999-12-31", "UTC")
    zone = ZoneInfo(ZURICH)
    units = calendar_units("day", day_runs(ZURICH))
    rng = Random(5)
    for _ in range(300):
        day = datetime(rng.randint(2400, 9998), rng.randint(1, 12), rng.randint(1, 28), tzinfo=zone)
        number = day.toordinal() - EPOCH.toordinal()
        assert rules.tick_of(number, units) == (day - EPOCH) // timedelta(microseconds=1)


@pytest.mark.slow
def test_every_zone_has_days() -> None:
    for zone in sorted(available_timezones()):
        check_units(calendar_units("day", day_runs(zone)))


@pytest.mark.parametrize(
    ("size", "options", "message"),
    [
        ("1 minute", {}, "TumblingEventTimeWindows"),
        ("0 months", {}, "size must be positive"),
        ("-1 day", {}, "size must be positive"),
        ("41 years", {}, "at most 40 years"),
        ("1 moon", {}, "a number of days, weeks, months"),
        (None, {}, "a number of days, weeks, months"),
        ("2 weeks", {"slide": "1 month"}, "slide must be in days and weeks"),
        ("1 month", {"slide": "1 day"}, "slide must be in days and weeks, or in months"),
        ("1 month", {"slide": "2 months"}, "slide must be at most the size"),
        ("1 week", {"week_start": "funday"}, "week_start is one of monday, "),
        ("1 month", {"week_start": "sunday"}, "week_start is for windows that start every week"),
        ("1 month", {"offset": "1 day"}, "offset must be in days and weeks, or"),
        ("1 month", {"offset": "1 month"}, "offset must be smaller than 1 month"),
        ("1 week", {"offset": "7 days"}, "offset must be smaller than 1 week .*, got 1 week"),
        ("1 week", {"offset": "-8 days"}, "offset must be smaller than 1 week .*, got -8 days"),
        ("1 week", {"offset": "1 month"}, "in months and years, as the size is, got 1 month"),
        ("1 week", {"slide": "0 weeks"}, "slide must be positive"),
        ("1 month", {"step": "1 week"}, "step must be 1 day, or divide the size"),
        ("1 year", {"step": "5 months"}, "step must be 1 day, or divide the size"),
        ("1 year", {"step": "0 months"}, "step must be 1 day, or divide the size"),
        ("1 year", {"step": "1 month", "slide": "1 month"}, "a slide or a step, not both"),
        ("1 day", {"time_zone": "Europe/Zuerich"}, "did you mean 'Europe/Zurich'"),
        ("1 day", {"time_zone": "zurich"}, "did you mean 'Europe/Zurich'"),
        ("1 day", {"time_zone": "Europe"}, "time_zone is a name of the IANA database"),
        ("1 day", {"time_zone": "../Zurich"}, "time_zone is a name of the IANA database"),
        ("1 day", {"time_zone": "+25:00"}, "time_zone is a name of the IANA database"),
        ("1 day", {"time_zone": 2}, "time_zone is a name of the IANA database"),
    ],
)
def test_what_has_no_meaning_is_refused(size: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidWindowError, match=message):
        gw.CalendarWindows.of(size, **options)


def test_tasks_know_the_zone_as_the_driver_does() -> None:
    made = gw.CalendarWindows.of("1 week", time_zone=ZURICH, week_start="sunday")
    again = pickle.loads(pickle.dumps(made))  # noqa: S301 - made here
    assert again == made
    assert again.describe() == "calendar windows of 1 week from Sunday in Europe/Zurich, event time"
    assert again.units is made.units
    assert len(pickle.dumps(made)) < 40_000
