"""Several inputs of one query: their rows together, and the least of their watermarks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import BEGIN, SECOND, files, run_to_the_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STRICT = gw.WatermarkStrategy.for_monotonous_timestamps()
LOOSE = gw.WatermarkStrategy.for_bounded_out_of_orderness("30 seconds")


def rows(*seconds: int, time: str = "ts") -> pa.Table:
    at = pa.array([BEGIN + s * SECOND for s in seconds]).cast(pa.timestamp("us", "UTC"))
    return pa.table({"k": [1] * len(seconds), time: at, "v": [float(s) for s in seconds]})


def counts(timed: gw.typing.TimedStream) -> gw.typing.Outputs:
    windowed = timed.key_by("k").window(gw.TumblingEventTimeWindows.of("10 seconds"))
    return (
        windowed.options(device="cpu", shards=1)
        .with_outputs()
        .aggregate(n=gw.count(), total=gw.sum("v"))
    )


def union(left: Any, right: Any) -> gw.typing.Outputs:
    others = gw.stream(right).event_time("when", LOOSE)
    return counts(gw.stream(left).event_time("ts", STRICT).union(others))


def test_tables_and_readers() -> None:
    left, right = rows(1, 12), rows(3, 25, time="when").select(["v", "when", "k"])
    wanted = counts(gw.stream(rows(1, 12, 3, 25)).event_time("ts", STRICT)).result()
    for made in (
        union(left, right),
        union(left.to_reader(), right),
        union(left, right.to_reader()),
    ):
        assert rows_of(made.result()) == rows_of(wanted)
    assert "the least of 1: latest row - 0 s; 2: latest row - 30 s" in made.explain()


def test_tables_are_put_together_by_their_chunks() -> None:
    """Not by batches, which end wherever a chunk of any column does."""
    left, right = rows(1, 2), rows(3, 4)
    apart = left.set_column(2, "v", pa.chunked_array([[1.0], [2.0]]))
    both = gw.stream(pa.concat_tables([apart] * 3)).event_time("ts", STRICT)
    made: Any = both.union(gw.stream(right).event_time("ts", STRICT)).source
    assert made._data["v"].to_pylist() == [1.0, 2.0] * 3 + [3.0, 4.0]
    assert [made._data[name].num_chunks for name in ("k", "v")] == [4, 7]


def test_inputs_must_be_alike() -> None:
    table = rows(1, time="when")
    for bad, error, text in (
        (table.drop_columns(["v"]), errors.QueryError, "same columns, got v"),
        (table.append_column("w", table["v"]), errors.QueryError, "same columns, got w"),
        (table.set_column(2, "v", pa.array([1])), errors.ColumnTypeError, "double.*got int64"),
        (table.append_column("ts", table["when"]), errors.QueryError, "same columns, got ts"),
    ):
        with pytest.raises(error, match=text):
            union(rows(1), bad)
    carried = gw.WatermarkStrategy.for_punctuated("when")
    with pytest.raises(errors.QueryError, match="follow the latest row, got carried by when"):
        gw.stream(table).event_time("when", STRICT).union(
            gw.stream(table).event_time("when", carried)
        )


@pytest.mark.thorough
def test_streams_wait_for_the_slower_input(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "a", [rows(1, 12), rows(58), rows(59)])
    files(tmp_path / "b", [rows(3, time="when"), rows(61, time="when"), rows(2, time="when")])

    def source(name: str, table: pa.Table) -> Any:
        schema = spark.createDataFrame(table).schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(tmp_path / name))

    left, right = source("a", rows(1)), source("b", rows(1, time="when"))
    run_to_the_end(union(left, right), tmp_path)
    found = gw.read_output(spark, tmp_path / "out").collect()
    seen = sorted((int(row.window_start.timestamp()) - BEGIN // SECOND, row.n) for row in found)
    # After the second files a is at 58 s and b at 61 - 30 s: what ends by 31 s has fired.
    assert seen == [(0, 2), (10, 1)]
    late = gw.read_output(spark, tmp_path / "out", "late").collect()
    assert [row.v for row in late] == [2.0]


def test_results_of_streams_are_written(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "a", [rows(1)])
    schema = spark.createDataFrame(rows(1)).schema
    stream = spark.readStream.schema(schema).parquet(str(tmp_path / "a"))
    first = counts(gw.stream(stream).event_time("ts", STRICT))
    with pytest.raises(errors.UnsupportedQueryError, match=r"stream_results.*got result of a"):
        first.result()
    with pytest.raises(errors.QueryError, match="the inputs of a union are all streams"):
        union(stream, spark.createDataFrame(rows(1, time="when")))


def test_projected_rows_have_these_columns_and_their_time() -> None:
    timed = gw.stream(rows(1, 12)).event_time("ts", STRICT)
    again = timed.project({"k": "v"}, at="ts").project("k")
    assert (again.time, again.source.user_columns) == ("at", ("k", "at"))
    hours = again.window_all(gw.TumblingEventTimeWindows.of("1 hour")).aggregate(s=gw.sum("k"))
    assert hours["s"].to_pylist() == [13.0]
    untimed = gw.stream(rows(1).to_reader()).project(a="k", b="k")
    assert untimed.select().result().to_pylist() == [{"a": 1, "b": 1}]
    with pytest.raises(errors.NameClashError, match="also from the event time"):
        timed.project(ts="v")
    with pytest.raises(errors.ColumnNotFoundError, match="nosuch"):
        timed.project("nosuch")


def test_rows_without_a_time_are_united_before_they_have_one(spark: SparkSession) -> None:
    left, right = rows(1, 12), rows(3).select(["v", "ts", "k"])
    for one, other in ((left, right), (spark.createDataFrame(left), spark.createDataFrame(right))):
        both = gw.stream(one).union(gw.stream(other))
        found = counts(both.event_time("ts", STRICT)).result()
        table = found if isinstance(found, pa.Table) else found.toArrow()
        wanted = counts(gw.stream(rows(1, 12, 3)).event_time("ts", STRICT)).result()
        assert rows_of(table) == rows_of(wanted)
    with pytest.raises(errors.QueryError, match="takes others without one"):
        gw.stream(left).union(gw.stream(right).event_time("ts", STRICT))  # type: ignore[arg-type]
    none: Any = gw.stream(left)._without_time
    with pytest.raises(errors.QueryError, match="all inputs of a union have an event time"):
        gw.stream(right).event_time("ts", STRICT).union(none)
