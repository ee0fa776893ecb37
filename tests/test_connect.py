"""The same query through Spark Connect: no sparkContext, no JVM handle."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from tests.queries import counters_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.connect

START = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def remote() -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote("local[2]").getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.shuffle.partitions", "4")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def table() -> pa.Table:
    times = [None if i % 17 == 0 else START + timedelta(seconds=7 * i) for i in range(500)]
    return pa.table(
        {
            "key": pa.array([f"k{i % 5}" for i in range(500)]),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "value": pa.array([float(i % 13) for i in range(500)]),
        }
    )


@pytest.mark.parametrize("partials", ["kernels", "spark"])
@pytest.mark.parametrize("slide", ["1 minute", "25 s"])
def test_sliding_windows(remote: SparkSession, table: pa.Table, slide: str, partials: str) -> None:
    aggregates = {"n": gw.count(), "total": gw.sum("value"), "top": gw.max("value")}

    def outputs(source: Any) -> gw.Outputs:
        watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
        keyed = gw.stream(source).event_time("ts", watermarks).key_by("key")
        windowed = keyed.window(gw.SlidingEventTimeWindows.of("1 minute", slide))
        return windowed.options(partials=partials).outputs(**aggregates)

    through_connect, local = outputs(remote.createDataFrame(table.to_pandas())), outputs(table)
    assert rows_of(through_connect.result().toArrow()) == rows_of(local.result())
    assert counters_of(through_connect.metrics()) == counters_of(local.metrics())
    assert through_connect.rejected().count() == 30


def test_expressions_and_collect(remote: SparkSession, table: pa.Table) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    frame = remote.createDataFrame(table.to_pandas())
    keyed = gw.stream(frame).event_time(F.col("ts"), watermarks)
    windowed = keyed.key_by(F.upper("key").alias("upper")).window(
        gw.TumblingEventTimeWindows.of("10 minutes")
    )
    result = windowed.order_by("ts").collect("value").toArrow()
    lengths = [len(values) for values in result.column("value").to_pylist()]
    assert sum(lengths) == 470
    assert set(result.column("upper").to_pylist()) == {f"K{i}" for i in range(5)}
