"""A query may go on in a session of another time zone: what crosses and is kept is in UTC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.spark_glue.tasks.planned_types import planned_type, to_planned_types
from tests.lanes import quick
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import BEGIN, SECOND, files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.conftest import TimeZone

UTC, ELSEWHERE = pa.timestamp("us", "UTC"), pa.timestamp("us", "Asia/Kathmandu")
LARGE = "spark.sql.execution.arrow.useLargeVarTypes"
WATERMARKS = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")


def nested(time: pa.DataType) -> pa.DataType:
    """A type with times in a list, a map and structs."""
    inner = pa.struct([("at", time), ("text", pa.string())])
    return pa.struct([("many", pa.list_(time)), ("by", pa.map_(pa.string(), inner))])


SCHEMA = pa.schema(
    [("ts", UTC), ("k", UTC), ("place", pa.struct([("since", UTC)])), ("when", UTC),
     ("deep", nested(UTC)), ("seq", pa.int64())]
)  # fmt: skip


def batches(count: int = 3, rows: int = 60) -> list[pa.Table]:
    """Rows of half a minute each, whose keys and payload are times, some of them null."""
    rng = np.random.default_rng(3)
    found = []
    for number in range(count):
        made = []
        for seq in range(number * rows, (number + 1) * rows):
            when = None if seq % 7 == 0 else int(rng.integers(0, 1 << 50))
            inner = [("a", {"at": when, "text": f"é{seq}"}), ("b", None)]
            made.append(
                {
                    "ts": BEGIN + (30 * number + int(rng.integers(0, 30))) * SECOND,
                    "k": None if seq % 11 == 0 else BEGIN + seq % 5,
                    "place": {"since": seq % 2},
                    "when": when,
                    "deep": None if seq % 5 == 0 else {"many": [when, seq], "by": inner},
                    "seq": seq,
                }
            )
        found.append(pa.Table.from_pylist(made, SCHEMA))
    return found


def latest(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keep the later of two rows."""
    return {**later, "when": later["when"] or earlier["when"]}


def windowed(source: Any) -> gw.typing.WindowedStream:
    keyed = gw.stream(source).event_time("ts", WATERMARKS).key_by("k", "place")
    made = keyed.window(gw.TumblingEventTimeWindows.of("1 minute"))
    return made.arrival_order("seq").options(device="cpu", shards=3)


def joined(source: Any) -> gw.typing.Outputs:
    sides = [gw.stream(source).event_time("ts", WATERMARKS).key_by("k") for _ in range(2)]
    pairs = sides[0].interval_join(sides[1]).between("-3 seconds", "20 seconds")
    made = pairs.options(device="cpu", shards=3)
    return made.with_outputs().select(["when", "deep", "seq"], ["when"], how="full")


QUERIES: dict[str, Callable[[Any], gw.typing.Outputs]] = {
    "aggregates": lambda source: (
        windowed(source)
        .with_outputs()
        .aggregate(top=gw.max("when"), first=gw.first("when"), n=gw.count())
    ),
    "collect": lambda source: windowed(source).with_outputs().collect_lists("when", "deep", "seq"),
    "evictor": lambda source: (
        windowed(source)
        .evictor(gw.CountEvictor.of(3))
        .with_outputs()
        .aggregate(last=gw.last("when"))
    ),
    "reduce": lambda source: windowed(source).with_outputs().reduce(latest, ("when", "deep")),
    "join": joined,
}


@pytest.mark.parametrize(
    "name", quick(["collect", "evictor", "join"], nightly=["evictor", "collect", "join"])
)
def test_a_restart_elsewhere(
    spark: SparkSession, tmp_path: Path, time_zone: TimeZone, name: str
) -> None:
    tables = batches()
    schema = spark.createDataFrame(tables[0]).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    written: list[pa.Table] = []

    def note(results: DataFrame, late: DataFrame, number: int) -> None:
        del late, number
        written.append(results.toArrow())

    def run(source: str, checkpoint: str) -> None:
        outputs = QUERIES[name](reader.parquet(str(tmp_path / source)))
        query = gw.write_stream(
            outputs, note, tmp_path / checkpoint, trigger={"availableNow": True}
        )
        query.awaitTermination()

    files(tmp_path / "whole", tables)
    run("whole", "uninterrupted")
    wanted = rows_of(pa.concat_tables(written))
    assert len(wanted) > 10
    written.clear()
    files(tmp_path / "parts", tables[:2])
    run("parts", "state")
    files(tmp_path / "later", tables[2:])
    (tmp_path / "later" / "0.parquet").rename(tmp_path / "parts" / "2.parquet")
    spark.conf.set(LARGE, "true")
    try:
        with time_zone("America/New_York"):
            run("parts", "state")
    finally:
        spark.conf.unset(LARGE)
    assert rows_of(pa.concat_tables(in_utc(written))) == wanted


@pytest.mark.parametrize("name", quick(QUERIES, "collect", "join"))
def test_a_batch_elsewhere(spark: SparkSession, time_zone: TimeZone, name: str) -> None:
    """The results are TIMESTAMPs: shown in the zone of the session, and the same instants."""
    frame = spark.createDataFrame(pa.concat_tables(batches()))
    wanted = QUERIES[name](frame).result()
    rows = rows_of(wanted.toArrow())
    with time_zone("America/New_York"):
        result = QUERIES[name](frame).result()
        assert result.schema == wanted.schema
        assert rows_of(*in_utc([result.toArrow()])) == rows
        shown = {row[0] for row in result.selectExpr("date_format(k, 'yyyy-MM-dd HH')").collect()}
    assert shown == {None, "2023-11-14 17"}


def in_utc(tables: list[pa.Table]) -> list[pa.Table]:
    return [
        pa.Table.from_batches(to_planned_types(t.to_batches()), _planned(t.schema)) for t in tables
    ]


def _planned(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(planned_type(field.type)) for field in schema])


def test_types_as_planned() -> None:
    assert planned_type(nested(ELSEWHERE)) == nested(UTC)
    assert planned_type(pa.list_(pa.large_string())) == pa.list_(pa.string())
    assert planned_type(pa.map_(pa.large_binary(), ELSEWHERE)) == pa.map_(pa.binary(), UTC)
    for dtype in (pa.timestamp("us"), pa.decimal128(9, 2), pa.int8(), nested(UTC)):
        assert planned_type(dtype) == dtype
    values = [{"many": [1, None], "by": [("a", {"at": 2, "text": "b"})]}, None]
    batch = pa.record_batch({"deep": pa.array(values, nested(ELSEWHERE))})
    (found,) = to_planned_types([batch])
    assert found.schema.field("deep").type == nested(UTC)
    assert found["deep"].to_pylist() == pa.array(values, nested(UTC)).to_pylist()
    (same,) = to_planned_types([found])
    assert same is found
