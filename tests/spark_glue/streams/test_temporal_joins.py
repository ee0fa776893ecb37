"""Temporal joins on Spark: in a batch, on streams, started again, in SQL."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors
from tests.lanes import quick
from tests.operators.joins.temporal_join import Case, Dumb, Row, table
from tests.spark_glue.stream_runs import BEGIN, SECOND, files, run_to_the_end, streamed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def rows_of(rng: random.Random, count: int) -> list[Row]:
    """Return rows of both sides, some without a key or a time."""
    return [
        (rng.random() < 0.5, rng.choice(["a", "b", "c", None]),
         None if rng.random() < 0.1 else BEGIN + rng.randrange(60) * SECOND,
         rng.randrange(10), rng.random() < 0.2)
        for _ in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "case",
    quick(
        [Case(has_deleted=True, lives=20 * SECOND, most=12), Case("inner", null_safe=True)],
        Case(has_deleted=True, lives=20 * SECOND, most=12),
    ),
    ids=str,
)
def test_a_batch_gives_what_the_local_runner_gives(spark: SparkSession, case: Case) -> None:
    rows = rows_of(random.Random(5), 120)
    sides = [table(rows, left=side, instants=True) for side in (True, False)]
    frames: list[Any] = [spark.createDataFrame(side) for side in sides]
    outputs, wanted = case.outputs(frames[0], frames[1]), case.outputs(sides[0], sides[1])
    found = outputs.result().toArrow()
    assert found.schema.names == wanted.result().schema.names
    assert _counted(found) == _counted(wanted.result())
    rejected = outputs.rejected().toArrow()
    assert rejected.num_rows == sum(row[2] is None for row in rows)
    assert "__version_deleted" not in rejected.column_names
    assert outputs.metrics().first()["rows"] == len(rows)


def _counted(rows: pa.Table) -> Counter[Any]:
    return Counter(tuple(row.values()) for row in rows.to_pylist())


#: Rows of each side in three micro-batches: side, key, second, value, whether it is deleted.
CALLS: list[list[Row]] = [
    [(True, "a", 5, 1, None), (False, "a", 4, 2, None), (True, "b", 6, 3, None),
     (False, "b", 1, 4, True), (False, None, 2, 0, None), (True, None, 3, 5, None)],
    [(True, "a", 30, 6, None), (False, "a", 20, 7, None), (True, "a", 4, 8, None),
     (False, "b", 29, 9, None)],
    [(True, "b", 60, 1, None), (False, "a", 25, 2, None), (False, "a", 61, 3, None)],
    [(True, "a", 62, 4, None), (False, "b", 70, 5, None), (True, "b", 90, 6, None),
     (False, "c", 90, 7, None)],
]  # fmt: skip


def calls() -> list[list[Row]]:
    """Return them at the times of streams."""
    return [
        [(side, key, BEGIN + (at or 0) * SECOND, v, gone) for side, key, at, v, gone in call]
        for call in CALLS
    ]


@pytest.fixture
def sides(spark: SparkSession, tmp_path: Path) -> list[DataFrame]:
    """Two streams of these micro-batches."""
    frames = []
    for left in (True, False):
        tables = [table(call, left=left, instants=True) for call in calls()]
        files(tmp_path / str(left), tables)
        frames.append(streamed(spark, tmp_path / str(left), tables[0]))
    return frames


def wanted_of(case: Case) -> Counter[Any]:
    """Return what is given up to the watermark that the last micro-batch has reached."""
    dumb, found, reached = Dumb(case), Counter[Any](), {True: -BEGIN, False: -BEGIN}
    for call in calls():
        found += Counter(dumb.call([], min(reached.values()) - 1))
        dumb.call(call, dumb.watermark)
        for side in reached:
            reached[side] = max([reached[side], *(row[2] or 0 for row in call if row[0] == side)])
    return found + Counter(dumb.call([], min(reached.values()) - 1))


@pytest.mark.parametrize("starts", quick([1, 4], nightly=[1]))
def test_streams_give_rows_once(
    spark: SparkSession, tmp_path: Path, sides: list[Any], starts: int
) -> None:
    """However often the query is started again: a micro-batch, and then all that are left."""
    case = Case(has_deleted=True, lives=40 * SECOND)
    outputs = case.outputs(*sides, shards=2)
    for _ in range(starts - 1):
        query = gw.write_stream(outputs, str(tmp_path / "out"), str(tmp_path / "state"))
        _wait_for_a_batch(query)
        query.stop()
    run_to_the_end(outputs, tmp_path)
    found = gw.read_output(spark, tmp_path / "out").select("k", "left_v", "right_v")
    wanted = wanted_of(case)
    assert wanted.total() == 7
    assert Counter(tuple(row) for row in found.collect()) == wanted
    assert gw.read_output(spark, tmp_path / "out", "late").count() == 0
    held = gw.read_state(tmp_path / "state")
    kinds = {each.table for each in held.tables}
    assert "versions" in kinds


def _wait_for_a_batch(query: Any) -> None:
    deadline = time.monotonic() + 120
    while query.isActive and not query.lastProgress and time.monotonic() < deadline:
        time.sleep(0.1)


@pytest.mark.thorough
def test_sql_on_a_stream(spark: SparkSession, tmp_path: Path, sides: list[Any]) -> None:
    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    streams = {
        name: gw.stream(side).event_time("ts", watermarks)
        for name, side in zip(("orders", "rates"), sides, strict=True)
    }
    asked = gw.sql(
        "SELECT o.k, o.v AS left_v, r.v AS right_v FROM orders AS o "
        "LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k",
        **streams,
    )
    assert ".temporal_join(rates" in asked.explain()
    run_to_the_end(asked.outputs(), tmp_path)
    found = gw.read_output(spark, tmp_path / "out").select("k", "left_v", "right_v")
    assert Counter(tuple(row) for row in found.collect()) == wanted_of(Case())


def test_streams_need_watermarks(spark: SparkSession, sides: list[Any]) -> None:
    del spark
    still = gw.stream(sides[0]).processing_time().key_by("k")
    with pytest.raises(errors.UnsupportedQueryError, match="would emit no row"):
        still.temporal_join(still).with_outputs().select(["v"])
