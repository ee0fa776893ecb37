"""Rows become partials before the shuffle of a stream, where tasks know the watermark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.planning.kinds.window import WINDOW_END, WINDOW_START
from gpu_windows.planning.own_columns import REASON
from tests.lanes import quick
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import (
    AGGREGATES,
    ASSIGNERS,
    WATERMARKS,
    batches,
    expected,
    files,
    metrics_in,
    outputs_of,
    results_in,
    run_to_the_end,
    streamed,
)

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


def run(made: gw.typing.Outputs, written: Written, folder: Path) -> None:
    """Run to the end, or to a death."""
    from pyspark.errors import StreamingQueryException

    query = gw.write_stream(made, written, folder / "state", trigger={"availableNow": True})
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        assert "a death" in str(error)  # noqa: PT017 - it need not be raised


@pytest.mark.thorough
def test_late_rows_are_given_back_whole_and_others_aggregated(
    spark: SparkSession, tmp_path: Path
) -> None:
    """In the first micro-batch after a death too: tasks know the watermark of the last commit."""
    files(tmp_path / "in", TABLES)
    made = outputs_of("sliding", streamed(spark, tmp_path / "in"))
    written = Written(dies_in=2)
    run(made, written, tmp_path)
    before = metrics_in(tmp_path)
    dead = written.results[2], written.back[2]
    run(made, written, tmp_path)
    after = metrics_in(tmp_path)
    assert [[each.number for each in found] for found in (before, after)] == [
        [0, 1, 2],
        [*range(4)],
    ]
    assert after[:3] == before
    assert rows_of(dead[0]) == rows_of(written.results[2])
    assert dead[1].num_rows == written.back[2].num_rows > 0
    results, late = expected(made, TABLES)
    assert written.rows(results.schema) == rows_of(results)
    back = pa.concat_tables(written.back.values())
    assert rows_of(back.select(["seq", REASON])) == rows_of(late.select(["seq", REASON]))
    assert set(late[REASON].to_pylist()) == {"late", "null_timestamp"}
    given_back = {number: len(each) for number, each in written.back.items()}
    counted = {each.number: each.counters for each in after}
    for number, counters in counted.items():
        assert counters.locally_aggregated == len(TABLES[number]) - given_back[number] > 0


#: Watermarks of inputs that may be idle, of functions of timestamps, and that rows carry.
OTHER_WATERMARKS = {
    "idleness": WATERMARKS.with_idleness("1 hour"),
    "generator": gw.WatermarkStrategy.for_generator(lambda at: int(at.max()) - 5_000_001),
    "carried": gw.WatermarkStrategy.for_punctuated("so_far"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", quick(OTHER_WATERMARKS, nightly=["carried", "generator"]))
def test_rows_are_aggregated_whatever_moves_the_watermark(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """Each says in each micro-batch what the bounded one says, so the results are the same."""
    files(tmp_path / "in", TABLES)
    wanted = outputs_of("sliding", streamed(spark, tmp_path / "in"))
    rows = streamed(spark, tmp_path / "in")
    if name == "carried":
        rows = rows.selectExpr("*", "ts - INTERVAL '5.000001' SECOND AS so_far")
    timed = gw.stream(rows).event_time("ts", OTHER_WATERMARKS[name])
    windowed = timed.key_by("k").window(ASSIGNERS["sliding"]).arrival_order("seq")
    outputs = windowed.options(device="cpu", shards=5).with_outputs().aggregate(**AGGREGATES)
    run_to_the_end(outputs, tmp_path)
    results, late = expected(wanted, TABLES)
    assert results_in(spark, tmp_path) == rows_of(results)
    counters = [each.counters for each in metrics_in(tmp_path)]
    assert sum(each.locally_aggregated for each in counters) == 12_000 - len(late)
