"""Windows of the calendar in every time zone begin where Spark's `date_trunc` says.

Spark reads the zones of Java, Python those of the machine, which may be of other years: what is
compared is where both know the same of a zone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, available_timezones

import pyarrow as pa
import pytest

import gpu_windows as gw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNITS = ("day", "week", "month", "quarter", "year")
#: Rows of each draw.
COUNT = 5_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = datetime(1900, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)
DAY = 86_400_000_000


def micros(instant: datetime) -> int:
    return (instant - EPOCH) // TICK


def clock(at: int, zone: str) -> int:
    """What clocks show at an instant, by Python's zones, in microseconds since 1970-01-01."""
    shown = (EPOCH + at * TICK).astimezone(ZoneInfo(zone))
    return micros(shown.replace(tzinfo=UTC))


def instant(shown: int, zone: str) -> int:
    """The instant at which clocks show a time, by Python's zones: as Java's, the first."""
    return micros((EPOCH + shown * TICK).replace(tzinfo=ZoneInfo(zone)))


def any_time(rng: Random, zone: str) -> int:
    del zone
    return rng.randrange(micros(FIRST), micros(LAST))


@cache
def clock_changes(zone: str) -> list[tuple[int, int]]:
    """Spans of thirty days of which the offsets of a zone differ at both ends."""
    ends = range(micros(FIRST), micros(LAST), 30 * DAY)
    shifts = [clock(at, zone) - at for at in ends]
    changes = zip(pairwise(ends), pairwise(shifts), strict=True)
    return [span for span, (before, after) in changes if before != after]


def near_change(rng: Random, zone: str) -> int:
    """A time at most two days from a change of clocks; any time if they never changed."""
    if not clock_changes(zone):
        return any_time(rng, zone)
    low, high = rng.choice(clock_changes(zone))
    before = clock(low, zone) - low
    while high - low > 1:
        middle = (low + high) // 2
        is_before = clock(middle, zone) - middle == before
        low, high = (middle, high) if is_before else (low, middle)
    return high + rng.randrange(-2 * DAY, 2 * DAY)


DRAWS = any_time, near_change


def spark_zones(spark: SparkSession) -> Iterator[str]:
    """Yield Python's zones that Spark knows, too."""
    from pyspark.errors import PySparkException

    before = spark.conf.get("spark.sql.session.timeZone")
    assert before is not None
    try:
        for zone in sorted(available_timezones()):
            try:
                spark.conf.set("spark.sql.session.timeZone", zone)
            except PySparkException:
                continue
            yield zone
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@dataclass(frozen=True)
class Start:
    """The start of a row's window, and what Spark says; clocks show microseconds as `clock`."""

    zone: str
    unit: str
    ts: int
    start: int
    #: What clocks show at the row, at the start of its window and a tick before that.
    shown: int
    shown_at_start: int
    shown_before: int
    #: What the row's clock is truncated to, and when clocks show that.
    truncated: int
    instant: int
    #: The same of the clock at the start.
    truncated_start: int
    instant_of_start: int

    @property
    def zones_agree(self) -> bool:
        """Whether Java and Python know the same of the zone, whatever the start is."""
        is_same = self.shown == clock(self.ts, self.zone)
        return is_same and self.instant == instant(self.truncated, self.zone)

    @property
    def is_between_midnights(self) -> bool:
        """Whether clocks went back over midnight before the row: Spark counts it to that day."""
        return self.start <= self.ts and self.shown < self.shown_at_start

    @property
    def is_right(self) -> bool:
        """Whether clocks show the truncated time at the start for the first time, or skip it."""
        if self.is_between_midnights:
            return self.start == self.instant_of_start and self.truncated < self.truncated_start
        if self.shown_at_start == self.truncated:
            return self.start == self.instant
        return self.shown_before < self.truncated < self.shown_at_start


def starts_of(spark: SparkSession, rows: list[tuple[str, int]]) -> list[Start]:
    """Return the starts of windows of all units, with what one query of Spark says of them."""
    zones, times = zip(*rows, strict=True)
    columns: dict[str, Any] = {"zone": zones, "ts": times, **{unit: [] for unit in UNITS}}
    for zone, ts in rows:  # by zone: that windows know when its days begin takes time
        for unit in UNITS:
            windows = gw.CalendarWindows.of(f"1 {unit}", time_zone=zone)
            columns[unit].append(windows.assign(ts)[0].start)
    texts = ["zone", "ts", *UNITS]
    shown = "from_utc_timestamp(timestamp_micros({0}), zone)"
    for unit in UNITS:
        truncated, again = (f"date_trunc('{unit}', {shown.format(at)})" for at in ("ts", unit))
        texts += [
            f"unix_micros({shown.format('ts')}) AS {unit}_shown",
            f"unix_micros({shown.format(unit)}) AS {unit}_shown_at_start",
            f"unix_micros({shown.format(f'{unit} - 1')}) AS {unit}_shown_before",
            f"unix_micros({truncated}) AS {unit}_truncated",
            f"unix_micros(to_utc_timestamp({truncated}, zone)) AS {unit}_instant",
            f"unix_micros({again}) AS {unit}_truncated_start",
            f"unix_micros(to_utc_timestamp({again}, zone)) AS {unit}_instant_of_start",
        ]
    results = spark.createDataFrame(pa.table(columns)).selectExpr(*texts).toArrow().to_pylist()
    facts = [each.name for each in fields(Start)[4:]]
    return [
        Start(row["zone"], unit, row["ts"], row[unit], *(row[f"{unit}_{each}"] for each in facts))
        for row in results
        for unit in UNITS
    ]


@pytest.mark.slow
def test_windows_of_every_zone_begin_where_spark_truncates(spark: SparkSession) -> None:
    zones = [*spark_zones(spark)]
    unknown = {*available_timezones()} - {*zones}
    assert len(unknown) < 20, unknown
    rng = Random(11)
    rows = [(zone, draw(rng, zone)) for draw in DRAWS for zone in rng.choices(zones, k=COUNT)]
    starts = starts_of(spark, sorted(rows))
    assert len(starts) == len(rows) * len(UNITS)
    compared = [each for each in starts if each.zones_agree]
    assert [each for each in compared if not each.is_right] == []
    assert sum(each.shown_at_start != each.truncated for each in compared) > 50, "odd midnights"
    differing = {each.zone for each in starts if not each.zones_agree and each.ts >= 0}
    everywhere = {each.zone for each in starts if not each.zones_agree}
    assert len(compared) > 0.9 * len(starts), f"they differ in {sorted(everywhere)}"
    assert len(differing) < 20, f"since 1970 Java and Python differ in {sorted(differing)}"
