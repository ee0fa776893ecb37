"""Queries that go on from the results of others, as one streaming query: what batch gives."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from tests.lanes import quick
from tests.spark_glue.streams import BEGIN, SECOND, WATERMARKS, batches, files, streamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HALF = gw.TumblingEventTimeWindows.of("20 seconds")
MINUTE = gw.TumblingEventTimeWindows.of("1 minute")


def in_time(count: int = 4, rows: int = 300) -> list[pa.Table]:
    """Rows of which none is late, then one that ends all windows of the others."""
    late = pa.array([1_000_000 * 90]).cast(pa.int64())[0].as_py()
    found = []
    for number, table in enumerate(batches(count, rows)):
        at = table["ts"].cast(pa.int64()).combine_chunks()
        begin = BEGIN + number * 60 * SECOND
        moved = [None if t is None else t if t >= begin else t + late for t in at.to_pylist()]
        ticks = pa.array(moved, pa.timestamp("us", "UTC"))
        found.append(table.set_column(0, "ts", ticks))
    return found


def minutes(source: Any, **options: Any) -> gw.Outputs:
    timed = gw.stream(source).event_time("ts", WATERMARKS)
    windowed = timed.key_by("k", "text").window(HALF).options(device="cpu", shards=3, **options)
    return windowed.outputs(n=gw.count(), total=gw.sum("v"))


def two_stages(source: Any) -> gw.Outputs:
    rows = gw.stream_results(minutes(source), "fine")
    return (
        rows.key_by("text")
        .window(MINUTE)
        .options(device="cpu", shards=2)
        .outputs(windows=gw.count(), n=gw.sum("n"), most=gw.max("total"))
    )


def three_stages(source: Any) -> gw.Outputs:
    again = gw.stream_results(two_stages(source), "coarse")
    windowed = again.window_all(gw.SlidingEventTimeWindows.of("2 minutes", "1 minute"))
    return windowed.topped(2, "n", columns=["text", "n"])


CHAINS = {"two": two_stages, "three": three_stages}


def rows_of(table: pa.Table) -> Counter[Any]:
    """Rows as values, their times in ticks."""
    columns = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for column in table.columns
    ]
    return Counter(zip(*(column.to_pylist() for column in columns), strict=True))


def run(made: gw.Outputs, folder: Path) -> None:
    out, state = folder / "out", folder / "state"
    query = gw.write_stream(made, out, state, trigger={"availableNow": True})
    query.awaitTermination()


def closed(made: gw.Outputs, before: int) -> Counter[Any]:
    """The results of a bounded run whose windows end before a time."""
    found = made.result()
    ends = found["window_end"].cast(pa.int64()).to_pylist()
    return rows_of(found.filter(pa.array([end <= before for end in ends])))


@pytest.mark.parametrize("name", quick(CHAINS, "two"))
def test_a_chain_gives_on_streams_what_it_gives_on_a_table(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    tables = in_time()
    files(tmp_path / "in", tables[:2])
    run(CHAINS[name](streamed(spark, tmp_path / "in")), tmp_path)
    files(tmp_path / "in", tables)
    run(CHAINS[name](streamed(spark, tmp_path / "in")), tmp_path)
    whole = pa.concat_tables(tables)
    latest = pa.compute.max(whole["ts"]).cast(pa.int64()).as_py()
    wanted = closed(CHAINS[name](whole), latest - 5 * SECOND)
    assert rows_of(gw.read_output(spark, tmp_path / "out").toArrow()) == wanted
    assert wanted
