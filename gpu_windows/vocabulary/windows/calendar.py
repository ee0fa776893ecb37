"""Windows of days, weeks, months, quarters and years of a time zone."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Self

from gpu_windows import rules
from gpu_windows.errors import InvalidWindowError
from gpu_windows.rules import Grid, Units
from gpu_windows.vocabulary.windows.calendar_units import (
    DAYS_OF_MONTH,
    CalendarUnit,
    ShownDays,
    calendar_units,
    shown_days,
)
from gpu_windows.vocabulary.windows.sliced import SlicedAssigner
from gpu_windows.vocabulary.windows.zones import DAY, day_runs

#: Units of periods: which unit of the calendar they count, and how many of them.
_PERIODS: dict[str, tuple[CalendarUnit, int]] = {
    "day": ("day", 1),
    "week": ("day", 7),
    "month": ("month", 1),
    "quarter": ("month", 3),
    "year": ("month", 12),
}
_SHORTER = {"microsecond", "millisecond", "second", "minute", "hour", "us", "ms", "s", "min", "h"}
_PERIOD = re.compile(r"\s*([+-]?\d+)\s*([a-zA-Z]+)\s*")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
#: 1970-01-01, from which days are counted, was a Thursday.
_EPOCH_WEEKDAY = 3
#: Longest period: so many years of the calendar are known before and after all timestamps of Spark.
MAX_YEARS = 40
MAX_UNITS = {"day": MAX_YEARS * 365, "month": MAX_YEARS * 12}


@dataclass(frozen=True)
class Period:
    """A number of days or months of the calendar.

    Parameters
    ----------
    count : int
    unit : {"day", "month"}
    """

    count: int
    unit: CalendarUnit

    @classmethod
    def parse(cls, text: object, name: str) -> Self:
        """Return the period of a string, such as ``"1 month"``.

        Raises
        ------
        InvalidWindowError
            If it is not a number of days, weeks, months, quarters or years.
        """
        match = _PERIOD.fullmatch(text) if isinstance(text, str) else None
        word = "" if match is None else match[2].lower().removesuffix("s")
        if match is None or word not in _PERIODS:
            rule = f"{name} is a number of days, weeks, months, quarters or years, as '1 month'"
            if match is not None and {match[2].lower(), word} & _SHORTER:
                rule += ": for shorter windows use TumblingEventTimeWindows"
            raise InvalidWindowError(rule, value=repr(text))
        unit, count = _PERIODS[word]
        return cls(int(match[1]) * count, unit)

    @property
    def is_weeks(self) -> bool:
        """Whether it is a number of weeks."""
        return self.unit == "day" and self.count % 7 == 0

    def describe(self) -> str:
        """Return it in the longest unit of which it is a whole number."""
        names = reversed([name for name, (unit, _) in _PERIODS.items() if unit == self.unit])
        for name in names:
            count, rest = divmod(self.count, _PERIODS[name][1])
            if rest == 0:
                break
        return f"{count} {name}{'' if abs(count) == 1 else 's'}"


def _check_offset(offset: Period, slide: Period) -> None:
    if abs(offset.count) >= slide.count:
        rule = f"the offset must be smaller than {slide.describe()} on either side of 0"
        raise InvalidWindowError(rule, value=offset.describe())


@dataclass(frozen=True)
class CalendarWindows(SlicedAssigner):
    """Windows of days, weeks, months, quarters or years in a time zone (Flink has none).

    They begin at midnight of the zone, so a day may have 23 or 25 hours. Where clocks skip midnight
    a day begins with its first instant; where they show it twice, with the first midnight.

    Parameters
    ----------
    period, every, offset : Period
        `of` takes strings. Windows are counted from 1970-01-01 plus the offset.
    step : Period, optional
        Of cumulative windows: they share a start, and grow by it.
    time_zone : str, optional
        None: event times have no zone, and windows are of the times that they show.

    Examples
    --------
    >>> from datetime import datetime
    >>> times = [datetime(2024, 1, 31, 22, 59), datetime(2024, 1, 31, 23)]
    >>> clicks = gw.stream(pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC"))}))
    >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> months = timed.window_all(gw.CalendarWindows.of("1 month", time_zone="Europe/Zurich"))
    >>> [str(start) for start in months.aggregate(n=gw.count())["window_start"].to_pylist()]
    ['2023-12-31 23:00:00+00:00', '2024-01-31 23:00:00+00:00']
    """

    period: Period
    every: Period
    offset: Period
    step: Period | None = None
    time_zone: str | None = None
    #: When days begin: as the process knew that in which the query was written.
    _days: bytes = field(init=False, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        size: str,
        *,
        slide: str | None = None,
        step: str | None = None,
        offset: str | None = None,
        time_zone: str | None = None,
        week_start: str = "monday",
    ) -> Self:
        """Build from periods of the calendar.

        Parameters
        ----------
        size : str
            Such as ``"1 month"``: a number of days, weeks, months, quarters or years.
        slide : str, optional
            How often windows start, at most ``size``; default: ``size``. Days and weeks do not go
            with months, quarters and years.
        step : str, optional
            Makes windows cumulative: all that begin together grow by it up to ``size``. ``"1 day"``
            goes with all sizes; else it must divide the size.
        offset : str, optional
            Shifts windows from 1970-01-01, or of weeks from a ``week_start``: years with offset
            ``"3 months"`` begin in April.
        time_zone : str, optional
            Of the IANA database, such as ``"Europe/Zurich"``, or an offset, such as ``"+02:00"``;
            left out for event times without a zone (TIMESTAMP_NTZ), and for these only.
        week_start : str
            The day of the week with which weeks begin.

        Raises
        ------
        InvalidWindowError
            If a period is not one, or they do not go together; if there is no such zone or day.
        """
        period = Period.parse(size, "size")
        every = period if slide is None else Period.parse(slide, "slide")
        shift = Period(0, period.unit) if offset is None else Period.parse(offset, "offset")
        day = str(week_start).lower()
        if day not in WEEKDAYS:
            rule = f"week_start is one of {', '.join(WEEKDAYS)}"
            raise InvalidWindowError(rule, value=repr(week_start))
        if every.is_weeks and every.count > 0 and shift.unit == every.unit:
            _check_offset(shift, every)  # the user's own, before the day of the week is added
            count = shift.count + (WEEKDAYS.index(day) - _EPOCH_WEEKDAY) % 7
            shift = replace(shift, count=count - every.count if count >= every.count else count)
        elif day != WEEKDAYS[0] and not every.is_weeks:
            rule = "week_start is for windows that start every week, or every few"
            raise InvalidWindowError(rule, value=f"{week_start!r} and {every.describe()}")
        if step is not None and slide is not None:
            raise InvalidWindowError("windows have a slide or a step, not both", value=repr(step))
        grows = None if step is None else Period.parse(step, "step")
        return cls(period, every, shift, grows, time_zone)

    def __post_init__(self) -> None:
        for name, part in (("size", self.period), ("slide", self.every)):
            if not 0 < part.count <= MAX_UNITS[part.unit]:
                rule = f"{name} must be positive, and at most {MAX_YEARS} years"
                raise InvalidWindowError(rule, value=part.describe())
        for name, part in (("slide", self.every), ("offset", self.offset)):
            if part.unit != self.period.unit:
                rule = f"{name} must be in days and weeks, or in months and years, as the size is"
                raise InvalidWindowError(rule, value=self._with_size(part))
        if self.every.count > self.period.count:
            rule = "slide must be at most the size: calendar windows have no gaps between them"
            raise InvalidWindowError(rule, value=self._with_size(self.every))
        _check_offset(self.offset, self.every)
        if self.step is not None and not (self._by_day or self._is_multiple_of(self.step)):
            rule = "step must be 1 day, or divide the size"
            raise InvalidWindowError(rule, value=self._with_size(self.step))
        object.__setattr__(self, "_days", day_runs(self.time_zone))

    def _with_size(self, part: Period) -> str:
        return f"{part.describe()} and {self.period.describe()}"

    def _is_multiple_of(self, step: Period) -> bool:
        is_divisor = step.count > 0 and self.period.count % step.count == 0
        return is_divisor and step.unit == self.period.unit

    @property
    def is_tumbling(self) -> bool:
        """Whether windows do not overlap."""
        return self.step is None and self.every == self.period

    @property
    def by_end(self) -> Self:
        """Windows that do not overlap, and end where these end."""
        last = self.step or self.every
        ahead = self.offset.count + (self.period.count if self.step is None else 0)
        offset = ahead % last.count if last.unit == self.period.unit else 0
        return type(self)(last, last, Period(offset, last.unit), None, self.time_zone)

    @property
    def _by_day(self) -> bool:
        """Whether windows of months grow by days."""
        return self.period.unit == "month" and self.step == Period(1, "day")

    def grid(self) -> Grid:
        """Return the slices, in `units`."""
        size, offset = self.period.count, self.offset.count
        if self._by_day:
            return rules.cumulative_grid(size * DAYS_OF_MONTH, 1, offset * DAYS_OF_MONTH)
        if self.step is not None:
            return rules.cumulative_grid(size, self.step.count, offset)
        return rules.sliding_grid(size, self.every.count, offset)

    @property
    def unit(self) -> CalendarUnit:
        """The unit that slices count."""
        return "day of month" if self._by_day else self.period.unit

    @property
    def units(self) -> Units:
        """The days or months of the zone."""
        return calendar_units(self.unit, self._days)

    @property
    def shown_days(self) -> ShownDays:
        """The days of the zone from which all others follow."""
        return shown_days(self._days)

    @property
    def longest_slide(self) -> int:
        """Upper bound of the ticks between the ends of consecutive windows."""
        days = (DAYS_OF_MONTH if self.period.unit == "month" and not self._by_day else 1) + 1
        return self.grid().slide * days * DAY

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        zone = "times without a zone" if self.time_zone is None else self.time_zone
        size = f"of {self.period.describe()}"
        if self.every != self.period:
            size += f" every {self.every.describe()}"
        if self.step is not None:
            size = f"up to {self.period.describe()} by {self.step.describe()}"
        return f"calendar windows {size}{self._offset_text} in {zone}, {self._time}"

    @property
    def _offset_text(self) -> str:
        if self.every.is_weeks:
            return f" from {WEEKDAYS[(self.offset.count + _EPOCH_WEEKDAY) % 7].title()}"
        return f", offset {self.offset.describe()}" if self.offset.count else ""
