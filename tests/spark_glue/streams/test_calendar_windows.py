"""Windows of the calendar on Spark: as in Spark's `date_trunc`, and over restarts of a stream."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpu_windows as gw
from gpu_windows.errors import StateMismatchError
from tests.lanes import quick
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import expected_of, streamed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.conftest import TimeZone

ZURICH = "Europe/Zurich"
WATERMARKS = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
WINDOWS: dict[str, Any] = {
    "months": gw.CalendarWindows.of("1 month", time_zone=ZURICH),
    "sliding": gw.CalendarWindows.of("1 quarter", slide="1 month", time_zone="America/Sao_Paulo"),
    "to date": gw.CalendarWindows.of("1 month", step="1 day", time_zone="Asia/Beirut"),
}
DAY = 86_400_000_000


def micros(text: str) -> int:
    return int(np.datetime64(text, "us").astype(np.int64))


def tables(count: int = 4, rows: int = 80) -> list[pa.Table]:
    """Rows of forty days each, some of them late, some without a time."""
    rng = np.random.default_rng(7)
    made = []
    for number in range(count):
        at = micros("2018-09-20") + 40 * DAY * number + rng.integers(0, 40 * DAY, rows)
        at[rng.random(rows) < 0.1] -= 70 * DAY
        ticks = pa.array(at, mask=rng.random(rows) < 0.02)
        made.append(
            pa.table(
                {
                    "ts": ticks.cast(pa.timestamp("us", "UTC")),
                    "k": rng.integers(0, 3, rows),
                    "v": rng.integers(0, 100, rows),
                }
            )
        )
    return made


def outputs(source: Any, name: str, kind: str, **options: Any) -> gw.typing.Outputs:
    timed = gw.stream(source).event_time("ts", WATERMARKS).key_by("k")
    windowed = timed.window(WINDOWS[name]).options(device="cpu", shards=2, **options)
    if kind == "late":
        windowed = windowed.allowed_lateness("3 days").with_firing_columns()
    made = windowed.with_outputs()
    if kind == "rows":
        return made.aggregate(n=gw.count(), median=gw.median("v"))
    return made.aggregate(n=gw.count(), total=gw.sum("v"))


def write(folder: Path, parts: list[pa.Table], first: int = 0) -> None:
    folder.mkdir(exist_ok=True)
    for number, part in enumerate(parts, first):
        pq.write_table(part, folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (1_700_000_000 + number,) * 2)


def run(
    spark: SparkSession, folder: Path, name: str, kind: str
) -> Iterator[tuple[pa.Table, pa.Table]]:
    found = []

    def note(results: DataFrame, late: DataFrame, number: int) -> None:
        del number
        found.append((results.toArrow(), late.toArrow()))

    made = outputs(streamed(spark, folder / "in", tables(1, 1)[0]), name, kind)
    query = gw.write_stream(made, note, folder / "state", trigger={"availableNow": True})
    query.awaitTermination()
    yield from found


CASES = {f"{name}, {kind}": (name, kind) for name in WINDOWS for kind in ("slices", "rows", "late")}


@pytest.mark.parametrize("case", quick(CASES, "to date, slices"))
def test_a_restart_in_another_zone_changes_nothing(
    spark: SparkSession, tmp_path: Path, time_zone: TimeZone, case: str
) -> None:
    name, kind = CASES[case]
    parts = tables()
    write(tmp_path / "in", parts[:2])
    found = [*run(spark, tmp_path, name, kind)]
    write(tmp_path / "in", parts[2:], 2)
    with time_zone("America/New_York"):
        found += run(spark, tmp_path, name, kind)
    reference = outputs(parts[0], name, kind, engine="reference")
    results, late = expected_of(reference.plan, parts)
    assert len(late) > 3
    assert len(results) > 15
    utc = pa.timestamp("us", "UTC")
    bounds = [results.schema.get_field_index(each) for each in ("window_start", "window_end")]
    for index in bounds:
        times = results.column(index).cast(utc)
        results = results.set_column(index, results.schema.field(index).name, times)
    got = pa.concat_tables([part for part, _ in found])
    assert rows_of(in_utc(got)) == rows_of(results.select(got.column_names))
    assert sum(len(part) for _, part in found) == len(late)


def in_utc(table: pa.Table) -> pa.Table:
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            times = table.column(index).cast(pa.timestamp("us", "UTC"))
            table = table.set_column(index, field.name, times)
    return table


def test_another_zone_or_unit_at_a_restart_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", tables(1))
    assert [*run(spark, tmp_path, "months", "slices")]
    changed = {
        "time_zone": gw.CalendarWindows.of("1 month", time_zone="Europe/Rome"),
        "period": gw.CalendarWindows.of("1 day", time_zone=ZURICH),
    }
    for name, windows in changed.items():
        WINDOWS[name] = windows
        try:
            with pytest.raises(StateMismatchError, match=f"window.{name}"):
                [*run(spark, tmp_path, name, "slices")]
        finally:
            del WINDOWS[name]


UNITS = {"day": "1 day", "week": "1 week", "month": "1 month", "quarter": "1 quarter",
         "year": "1 year"}  # fmt: skip
#: Zones, and the years in which Java and Python know the same of them.
ZONES = {
    "UTC": ("0002", "9999"), ZURICH: ("1970", "9999"), "America/New_York": ("1970", "2500"),
    "America/Sao_Paulo": ("1970", "2037"), "Asia/Kathmandu": ("1970", "2037"),
    "Australia/Lord_Howe": ("1981", "2037"), "Pacific/Apia": ("1970", "2037"),
    "Asia/Beirut": ("1993", "2037"), "Asia/Tehran": ("1980", "2037"),
}  # fmt: skip


@pytest.mark.parametrize("zone", quick(ZONES, ZURICH))
def test_windows_begin_where_spark_truncates(
    spark: SparkSession, time_zone: TimeZone, zone: str
) -> None:
    rng = np.random.default_rng(len(zone))
    low, high = map(micros, ZONES[zone])
    ticks = rng.integers(low, high, 700)
    days = rng.integers(low // DAY, high // DAY, 300) * DAY + rng.integers(-14, 14, 300) * DAY // 24
    times = pa.array(np.concatenate([ticks, days])).cast(pa.timestamp("us", "UTC"))
    with time_zone(zone):
        frame = spark.createDataFrame(pa.table({"ts": times}))
        texts = [f"unix_micros(date_trunc('{unit}', ts)) AS {unit}" for unit in UNITS]
        rows = frame.selectExpr("unix_micros(ts) AS ts", *texts).toArrow()
    for unit, size in UNITS.items():
        windows = gw.CalendarWindows.of(size, time_zone=zone)
        starts = [windows.assign(ts)[0].start for ts in rows["ts"].to_pylist()]
        assert starts == rows[unit].to_pylist(), unit


@pytest.mark.parametrize("partials", quick(["auto", "kernels"], "kernels"))
def test_batches_give_what_tables_give(spark: SparkSession, partials: Any) -> None:
    whole = pa.concat_tables(tables())
    frame = spark.createDataFrame(whole).repartition(3)
    for name in WINDOWS:
        wanted = outputs(whole, name, "slices", engine="reference").result()
        found = outputs(frame, name, "slices", partials=partials).result().toArrow()
        assert rows_of(in_utc(found)) == rows_of(in_utc(wanted)), name
