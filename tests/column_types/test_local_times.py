"""Times without a zone as instants: Java's rule, which is that of Python's `datetime` too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import gpu_windows as gw
from gpu_windows.column_types.local_times import instants_of
from gpu_windows.errors import ColumnTypeError, QueryError

WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()
HOUR = gw.TumblingEventTimeWindows.of("1 hour")
#: Zones that go forward by an hour, by half of one, and by a day; before 1900 clocks are of towns.
ZONES = ["Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "UTC"]
AROUND = [
    (2024, 3, 31), (2024, 10, 27), (2024, 3, 10), (2024, 11, 3), (2024, 4, 7), (2024, 10, 6),
    (2011, 12, 30), (1890, 1, 1), (1969, 12, 31),
]  # fmt: skip
LOCAL = [
    datetime(*day) + timedelta(minutes=20 * step, microseconds=step)
    for day in AROUND
    for step in range(-6, 78)
]


def in_python(times: list[datetime], zone: str) -> list[int]:
    """Return microseconds since 1970; ``fold`` is 0: the first instant, the offset before a gap."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    instants = (each.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC) for each in times)
    return [(each - epoch) // timedelta(microseconds=1) for each in instants]


@pytest.mark.parametrize("zone", ZONES)
def test_instants_are_those_of_python(zone: str) -> None:
    for unit in ("us", "ns"):
        times = pa.array(LOCAL, pa.timestamp("us")).cast(pa.timestamp(unit))
        found = instants_of(times, zone)
        assert found.type == pa.timestamp(unit, zone)
        assert found.cast(pa.timestamp("us", zone)).cast("int64").to_pylist() == in_python(
            LOCAL, zone
        )
    assert instants_of(pa.array([None], pa.timestamp("us")), zone).to_pylist() == [None]
    chunked = pa.chunked_array([[None], LOCAL], pa.timestamp("us"))
    assert instants_of(chunked, zone).cast("int64").to_pylist() == [None, *in_python(LOCAL, zone)]


def rows_of(times: list[datetime | None]) -> pa.Table:
    column = pa.array(times, pa.timestamp("us"))
    return pa.table({"k": ["a"] * len(times), "ts": column, "v": [*range(len(times))]})


def ticks_of(source: Any, zone: str) -> list[int]:
    """Return the first instants of each row's window, and the rows' numbers in them."""
    keyed = gw.stream(source).event_time("ts", WATERMARKS, time_zone=zone).key_by("v")
    result: Any = keyed.window(HOUR).aggregate(ts=gw.first("ts"))
    table = result if isinstance(result, pa.Table) else result.toArrow()
    rows = table.sort_by("v")
    assert rows.schema.field("window_start").type.tz is not None
    starts = rows["window_start"].cast("int64").to_pylist()
    ticks: list[int] = rows["ts"].cast("int64").to_pylist()
    assert all(
        start <= tick < start + 3_600_000_000 for start, tick in zip(starts, ticks, strict=True)
    )
    return ticks


def test_tables_readers_and_files_here(tmp_path: Path) -> None:
    zone, table = "Europe/Zurich", rows_of([*LOCAL])
    pq.write_table(table, tmp_path / "a.parquet")
    seconds = rows_of([*LOCAL[:3]])
    coarse = seconds.set_column(1, "ts", seconds["ts"].cast(pa.timestamp("s"), safe=False))
    for source in (table, table.to_reader(), gw.scan(tmp_path)):
        assert ticks_of(source, zone) == in_python(LOCAL, zone)
    whole = [each.replace(microsecond=0) for each in LOCAL[:3]]
    assert ticks_of(coarse, zone) == in_python(whole, zone)


@pytest.mark.thorough
def test_spark_casts_alike_whatever_the_zone_of_the_session(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, setting = rows_of([*LOCAL]), "spark.sql.session.timeZone"
    pq.write_table(table, tmp_path / "a.parquet")
    path = str(tmp_path)
    before = str(spark.conf.get(setting))
    try:
        for zone in ZONES[:4]:
            spark.conf.set(setting, zone)
            cast = spark.read.parquet(path).selectExpr(
                "v", "unix_micros(CAST(ts AS TIMESTAMP)) AS m"
            )
            of_spark = [row["m"] for row in cast.orderBy("v").collect()]
            assert of_spark == in_python(LOCAL, zone)
            for session in (before, "Asia/Tokyo"):
                spark.conf.set(setting, session)
                assert ticks_of(spark.read.parquet(path), zone) == of_spark
                assert ticks_of(gw.scan(path, spark), zone) == of_spark
    finally:
        spark.conf.set(setting, before)


def test_scans_on_spark_stay_in_tasks(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(rows_of([*LOCAL]), tmp_path / "a.parquet")
    stream = gw.stream(gw.scan(str(tmp_path), spark))
    timed = stream.event_time("ts", WATERMARKS, time_zone="Europe/Zurich")
    said = timed.key_by("k").window(HOUR).with_outputs().aggregate(n=gw.count("v")).explain()
    assert "read in the tasks" in said


def test_misuse_is_told() -> None:
    table = rows_of([datetime(2024, 1, 1)])
    stream = gw.stream(table)
    for zone in ("Mars/Olympus", "", "europe/zurich", 2, True, "../etc/passwd"):
        with pytest.raises(QueryError, match="a time zone is one of the IANA database"):
            stream.event_time("ts", WATERMARKS, time_zone=zone)  # type: ignore[arg-type]
    instants = table.set_column(1, "ts", table["ts"].cast(pa.timestamp("us", "UTC")))
    for source, column in ((instants, "ts"), (table, "v"), (table, "k")):
        with pytest.raises(
            ColumnTypeError, match="time_zone is for times without a zone"
        ) as caught:
            gw.stream(source).event_time(column, WATERMARKS, time_zone="UTC")
        assert caught.value.column == column
    with pytest.raises(gw.errors.ColumnNotFoundError):
        stream.event_time("nope", WATERMARKS, time_zone="UTC")


def test_carriers_of_watermarks_are_of_the_zone_too() -> None:
    table = rows_of([datetime(2024, 7, 1, 12), None])
    table = table.append_column("w", pa.array([None, datetime(2024, 7, 1, 12)], pa.timestamp("us")))
    strategy = gw.WatermarkStrategy.for_punctuated("w")
    timed = gw.stream(table).event_time("ts", strategy, time_zone="Europe/Zurich")
    found = timed.window_all(HOUR).aggregate(n=gw.count())
    assert found["window_start"].cast("int64").to_pylist() == in_python(
        [datetime(2024, 7, 1, 12)], "Europe/Zurich"
    )
