"""A checkpoint that is not one of `write_stream` is refused, and stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gpu_windows as gw
from gpu_windows.errors import StateMismatchError
from tests.spark_glue.streams import (
    WATERMARKS,
    batches,
    files,
    outputs_of,
    run_to_the_end,
    streamed,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = batches(1, 50)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def outputs(spark: SparkSession, folder: Path) -> gw.Outputs:
    return outputs_of("tumbling", streamed(spark, folder / "in"))


def refused(spark: SparkSession, folder: Path) -> str:
    """Start a query on the folder ``state``; return why it is refused."""
    sinks: list[str | Callable[..., None]] = [str(folder / "out"), lambda *_: None]
    for sink in sinks:
        with pytest.raises(StateMismatchError, match="a checkpoint must be a new folder") as found:
            gw.write_stream(outputs(spark, folder), sink, str(folder / "state"))
    assert not (folder / "out").exists()
    return str(found.value)


@pytest.mark.thorough
def test_a_query_of_sparks_that_runs_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    """Its checkpoint stays as it was, and the query is not stopped."""
    files(tmp_path / "in", TABLES)
    state = tmp_path / "state"
    counted = streamed(spark, tmp_path / "in").withWatermark("ts", "1 second").groupBy("k", "ts")
    writer = counted.count().writeStream.format("noop").option("checkpointLocation", str(state))
    query = writer.start()
    try:
        query.processAllAvailable()
        before = contents(state)
        assert "streaming query that write_stream did not start" in refused(spark, tmp_path)
        assert contents(state) == before
        assert query.isActive
    finally:
        query.stop()
    before = contents(state)
    assert "streaming query that write_stream did not start" in refused(spark, tmp_path)
    assert contents(state) == before


@pytest.mark.thorough
def test_a_query_of_ours_that_somebody_else_writes_is_one_of_theirs(
    spark: SparkSession, tmp_path: Path
) -> None:
    files(tmp_path / "in", TABLES)
    keyed = gw.stream(streamed(spark, tmp_path / "in")).event_time("ts", WATERMARKS).key_by("k")
    result = keyed.window(gw.TumblingEventTimeWindows.of("20 seconds")).aggregate(n=gw.count())
    writer = result.writeStream.format("noop").trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "state")).start().awaitTermination()
    assert "streaming query that write_stream did not start" in refused(spark, tmp_path)


@pytest.mark.parametrize("name", ["rows.csv", "year=2024/part-0.parquet", "[a]*/rows.csv"])
def test_a_folder_of_something_else(spark: SparkSession, tmp_path: Path, name: str) -> None:
    files(tmp_path / "in", TABLES)
    file = tmp_path / "state" / name
    file.parent.mkdir(parents=True)
    file.write_text("1,2")
    assert "this one has other files" in refused(spark, tmp_path)
    assert list(contents(tmp_path / "state").values()) == [b"1,2"]


def test_a_file(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", TABLES)
    (tmp_path / "state").write_text("1,2")
    assert "this one has other files" in refused(spark, tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("left", [(), ("gpu_windows/_temporary/0",), ("gpu_windows_owner",)])
def test_an_empty_folder_and_one_whose_first_start_died_are_new(
    spark: SparkSession, tmp_path: Path, left: tuple[str, ...]
) -> None:
    files(tmp_path / "in", TABLES)
    (tmp_path / "state").mkdir()
    for folder in left:
        (tmp_path / "state" / folder).mkdir(parents=True)
        (tmp_path / "state" / folder / ".draft").write_text("")
    run_to_the_end(outputs(spark, tmp_path), tmp_path)
    assert (tmp_path / "state/commits/0").exists()
