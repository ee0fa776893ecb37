"""Patterns of rows on Spark: in a batch, and as a stream that is stopped and goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

import gpu_windows as gw
from gpu_windows.errors import QueryError, StateMismatchError, UnsupportedQueryError
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import batches, files, run_to_the_end, streamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.thorough]

DEFINE = {"A": "UPPER(A.text) <> 'Z'", "B": "B.v >= A.v", "C": "C.v < LAST(B.v) AND C.seq > A.seq"}
TOLD = {
    "a": "A.seq",
    "n": "COUNT(B.seq)",
    "low": "MIN(text)",
    "rise": "LAST(B.v) - A.v",
    "t": "C.ts",
}


def matched(source: Any, within: str = "10 minutes", **define: str) -> gw.typing.Outputs:
    watermarks = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
    keyed = gw.stream(source).event_time("ts", watermarks).key_by("k")
    pattern = keyed.match_recognize("A B+ C", {**DEFINE, **define}, within=within, shards=3)
    return pattern.arrival_order("seq").with_outputs().measures(**TOLD)


def test_a_batch_gives_what_a_table_gives(spark: SparkSession, tmp_path: Path) -> None:
    tables = batches()
    files(tmp_path / "in", tables)
    whole = pa.concat_tables(tables)
    frame = spark.read.parquet(str(tmp_path / "in"))
    found = matched(frame)
    wanted = rows_of(matched(whole.sort_by("seq")).result())
    assert len(wanted) > 10
    assert rows_of(found.result().toArrow()) == wanted
    assert found.metrics().agg(F.sum("fired")).first()[0] == len(wanted)


def test_a_stream_that_is_stopped_gives_the_same(spark: SparkSession, tmp_path: Path) -> None:
    tables = batches()
    files(tmp_path / "in", tables[:2])
    run_to_the_end(matched(streamed(spark, tmp_path / "in")), tmp_path)
    files(tmp_path / "in", tables)
    outputs = matched(streamed(spark, tmp_path / "in"))
    run_to_the_end(outputs, tmp_path)
    late = {row["seq"] for row in rows_late(spark, tmp_path)}
    taken = pa.concat_tables(tables).sort_by("seq")
    on_time = taken.filter(pa.array([seq not in late for seq in taken["seq"].to_pylist()]))
    found = rows_of(gw.read_output(spark, tmp_path / "out").toArrow())
    wanted = rows_of(matched(on_time).result())
    assert found
    assert {*found} <= {*wanted}  # those of rows that the watermark has reached
    with pytest.raises(StateMismatchError, match=r"match\.within was 10 min, is 20 min"):
        run_to_the_end(matched(streamed(spark, tmp_path / "in"), "20 minutes"), tmp_path)
    with pytest.raises(StateMismatchError, match=r"match\.define\.B"):
        run_to_the_end(matched(streamed(spark, tmp_path / "in"), B="B.v > A.v"), tmp_path)
    with pytest.raises(UnsupportedQueryError, match="later than its last row"):
        gw.stream_results(outputs, "matches")


def test_patterns_are_of_event_time(spark: SparkSession) -> None:
    rows = gw.stream(spark.readStream.format("rate").load())
    with pytest.raises(QueryError, match=r"or ingestion_time\(\) of a stream"):
        rows.processing_time().key_by("value").match_recognize("A B")
    by_arrival = rows.ingestion_time().key_by("value").match_recognize("A B")
    assert by_arrival.with_outputs().measures(a="A.value").is_streaming


def rows_late(spark: SparkSession, folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = gw.read_output(spark, folder / "out", "late").toArrow().to_pylist()
    return rows
