"""Rows become partials before the shuffle of a stream, where tasks know the watermark."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.query.base import REASON
from gpu_windows.query.window import WINDOW_END, WINDOW_START
from tests.query.queries import rows_of
from tests.spark_glue.streams import batches, expected, files, outputs_of, streamed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Micro-batches with many rows of each key and slice.
TABLES = batches(4, 3_000)


class Written:
    """What a query has written, micro-batch by micro-batch; one of them it may die in."""

    def __init__(self, dies_in: int | None = None) -> None:
        self.results: dict[int, pa.Table] = {}
        self.back: dict[int, pa.Table] = {}
        self._dies_in = dies_in

    def __call__(self, results: DataFrame, back: DataFrame, number: int) -> None:
        self.results[number], self.back[number] = results.toArrow(), back.toArrow()
        if number == self._dies_in:
            self._dies_in = None
            raise ValueError("a death")

    def rows(self, schema: pa.Schema) -> list[Any]:
        """Return all results, the bounds of windows in ticks."""
        whole = pa.concat_tables([each for each in self.results.values() if len(each)])
        for name in (WINDOW_START, WINDOW_END):
            at = whole.schema.get_field_index(name)
            whole = whole.set_column(at, name, whole[name].cast(pa.int64()))
        return rows_of(whole.cast(schema))


def run(made: gw.Outputs, written: Written, folder: Path) -> dict[int, int]:
    """Run to the end; return how many rows each micro-batch aggregated before the shuffle."""
    from pyspark.errors import StreamingQueryException

    state = folder / "state"
    query = gw.write_stream(made, written, state, trigger={"availableNow": True})
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        assert "a death" in str(error)  # noqa: PT017 - it need not be raised
    reports = [json.loads(each.json) for each in query.recentProgress]
    told = {each["batchId"]: each["observedMetrics"]["gpu_windows"] for each in reports}
    return {number: each["locally_aggregated"] for number, each in told.items() if each["rows"]}


@pytest.mark.thorough
def test_late_rows_are_given_back_whole_and_others_aggregated(
    spark: SparkSession, tmp_path: Path
) -> None:
    """In the first micro-batch after a death too, which is cut as it was."""
    files(tmp_path / "in", TABLES)
    made = outputs_of("sliding", streamed(spark, tmp_path / "in"))
    written = Written(dies_in=2)
    before = run(made, written, tmp_path)
    dead = written.results[2], written.back[2]
    after = run(made, written, tmp_path)
    assert (sorted(before), sorted(after)) == ([0, 1], [2, 3])
    assert rows_of(dead[0]) == rows_of(written.results[2])
    assert dead[1].num_rows == written.back[2].num_rows > 0
    results, late = expected(made, TABLES)
    assert written.rows(results.schema) == rows_of(results)
    back = pa.concat_tables(written.back.values())
    assert rows_of(back.select(["seq", REASON])) == rows_of(late.select(["seq", REASON]))
    assert set(late[REASON].to_pylist()) == {"late", "null_timestamp"}
    assert sum((before | after).values()) == sum(map(len, TABLES)) - len(late)


@pytest.mark.thorough
def test_where_the_watermark_is_not_known_rows_are_shipped(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from gpu_windows.spark_glue import offset_log

    def fails(uri: str) -> Any:
        raise OSError(f"{uri} is out of reach")

    monkeypatch.setattr(offset_log, "file_system", fails)
    files(tmp_path / "in", TABLES[:2])
    made = outputs_of("sliding", streamed(spark, tmp_path / "in"))
    written = Written()
    with caplog.at_level(logging.WARNING, offset_log.__name__):
        assert set(run(made, written, tmp_path).values()) == {0}
    assert caplog.text.count("is out of reach") == 1
    results, _ = expected(made, TABLES[:2])
    assert written.rows(results.schema) == rows_of(results)


def test_a_query_that_is_written_by_others_ships_rows(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", TABLES[:2])
    made = outputs_of("sliding", streamed(spark, tmp_path / "in"))
    metrics = made.metrics().writeStream.format("memory").queryName("of_rows")
    metrics.trigger(availableNow=True).start().awaitTermination()
    sums = spark.sql("SELECT sum(rows), sum(locally_aggregated) FROM of_rows").first()
    assert sums is not None
    assert tuple(sums) == (sum(map(len, TABLES[:2])), 0)


@pytest.mark.parametrize("text", ["", "v1\n", "v1\n{}\n", "v1\n[]\n", 'v1\n{"batchWatermarkMs":'])
def test_a_watermark_that_cannot_be_read_is_not_known(tmp_path: Path, text: str) -> None:
    from gpu_windows.spark_glue.offset_log import OffsetLog, Planned

    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "7").write_text(text)
    noted = 'v1\n{"batchWatermarkMs":12000,"batchTimestampMs":17000,"conf":{}}\n{}'
    (tmp_path / "offsets" / "8").write_text(noted)
    log = OffsetLog(tmp_path.as_uri())
    found = [log.planned(number) for number in (7, 8, 9)]
    assert found == [None, Planned(watermark_ms=12_000, at_ms=17_000), None]
    assert OffsetLog("nowhere://path").planned(8) is None


def test_no_task_knows_no_watermark() -> None:
    from gpu_windows.spark_glue.in_force import Notice

    one, other = Notice(), Notice()
    assert one.watermark_ms() is None
    assert one.setting != other.setting
