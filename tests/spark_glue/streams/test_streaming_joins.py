"""Joins of streams: late rows, the nearest row, processing time, what a checkpoint holds."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import gpu_windows as gw
from gpu_windows.cli import app
from gpu_windows.monitoring.progress import instant
from tests.lanes import quick
from tests.operators.joins.rows import INSTANT, STRICT, keyed
from tests.spark_glue.stream_runs import (
    BEGIN,
    SECOND,
    files,
    metrics_in,
    run_to_the_end,
    streamed,
    two_streams,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from gpu_windows.functions.join import JoinType

pytestmark = pytest.mark.spark

LEFT = [[("a", 1, 1), ("b", 12, 2)], [("a", 31, 3)], []]
RIGHT = [[("a", 3, 4)], [("a", 32, 5)], [("a", 2, 6), ("a", 30, 7), ("a", 33, 8)]]


@pytest.fixture
def sides(spark: SparkSession, tmp_path: Path) -> list[DataFrame]:
    """Two streams of three micro-batches."""
    return two_streams(spark, tmp_path, LEFT, RIGHT)


def written(spark: SparkSession, folder: Path, kind: str, *columns: str) -> Counter[Any]:
    frame = gw.read_output(spark, folder / "out", kind).select(*columns)
    return Counter(tuple(row) for row in frame.collect())


#: Of a left row, a right row or both: which rows an interval join gives, and which come back late.
MET = [("a", 1, 4), ("a", 3, 5), ("a", 3, 7), ("a", 3, 8)]
GIVEN: dict[JoinType, tuple[list[Any], list[Any]]] = {
    "full": ([*MET, ("b", 2, None), ("a", None, 6)], []),
    "inner": (MET, [("a", 6, "late")]),
}


@pytest.mark.parametrize("how", quick(GIVEN))
def test_late_rows_join_what_is_kept(
    spark: SparkSession, tmp_path: Path, sides: list[DataFrame], how: JoinType
) -> None:
    """In the third micro-batch the watermark is at 31 s: a right row of 30 s is late."""
    left, right = map(keyed, sides)
    pairs = left.interval_join(right).between("-5 seconds", "2 seconds")
    run_to_the_end(pairs.join_late().with_outputs().select(["v"], ["v"], how=how), tmp_path)
    given, back = GIVEN[how]
    assert written(spark, tmp_path, "result", "k", "left_v", "right_v") == Counter(given)
    assert written(spark, tmp_path, "late", "k", "right_v", "rejection_reason") == Counter(back)


@pytest.mark.thorough
def test_the_nearest_row_comes_when_none_is_nearer(
    spark: SparkSession, tmp_path: Path, sides: list[DataFrame]
) -> None:
    left, right = map(keyed, sides)
    pairs = left.interval_join(right).between("-5 seconds", "5 seconds").nearest("after")
    run_to_the_end(pairs.with_outputs().select(["v"], ["v"], how="left"), tmp_path)
    found = written(spark, tmp_path, "result", "k", "left_v", "right_v")
    assert found == Counter([("a", 1, 4), ("b", 2, None)])  # (a, 31 s) waits for 36 s


#: Rows of a side that carries its watermark: key, second, value, watermark; a marker has no key.
CARRYING: list[list[tuple[str | None, int, int, int | None]]] = [
    [("a", 1, 1, None), ("a", 10, 2, 0), ("a", 15, 3, None)],
    [(None, 0, 0, 14)],
]
IDLE = STRICT.with_idleness("2 seconds")


def carrying(rows: list[tuple[str | None, int, int, int | None]]) -> pa.Table:
    """Rows of a side that carries its watermark, and markers: null in all other columns."""
    keys, seconds, values, carried = zip(*rows, strict=True)

    def unless_marker(of: tuple[int, ...]) -> list[int | None]:
        return [None if k is None else v for k, v in zip(keys, of, strict=True)]

    def instants(of: Iterable[int | None]) -> pa.Array:
        ticks = [None if second is None else BEGIN + second * SECOND for second in of]
        return pa.array(ticks, pa.int64()).cast(INSTANT)

    columns = [pa.array(keys, pa.string()), instants(unless_marker(seconds)), instants(carried)]
    names = ["k", "ts", "w", "v"]
    return pa.table([*columns, pa.array(unless_marker(values), pa.int64())], names)


@pytest.mark.slow
def test_a_side_that_carries_its_watermark_and_one_with_a_silent_input(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Of the right inputs the second one is at 5 s, and holds the watermark until it is idle."""
    tables = [carrying(rows) for rows in CARRYING]
    files(tmp_path / "carrying", tables)
    ours = gw.stream(streamed(spark, tmp_path / "carrying", tables[0]))
    left = ours.event_time("ts", gw.WatermarkStrategy.for_punctuated("w")).key_by("k")
    right = [[("a", 2, 4)], [("a", 40, 5)]], [[("a", 5, 6)], []]
    one, other = (
        gw.stream(each).event_time("ts", IDLE) for each in two_streams(spark, tmp_path, *right)
    )
    pairs = left.interval_join(one.union(other).key_by("k")).between("0 seconds", "2 seconds")
    outputs = pairs.options(shards=3).with_outputs().select(["v"], ["v"], how="left")

    run_to_the_end(outputs, tmp_path)
    found = written(spark, tmp_path, "result", "k", "left_v", "right_v")
    assert found == Counter([("a", 1, 4)])
    assert str(metrics_in(tmp_path)[-1].held).startswith("held by input 3 since")
    query = gw.write_stream(outputs, str(tmp_path / "out"), str(tmp_path / "state"))
    try:
        deadline = time.monotonic() + 120
        while found.total() < 2:
            assert time.monotonic() < deadline, (found, query.exception())
            time.sleep(0.3)
            found = written(spark, tmp_path, "result", "k", "left_v", "right_v")
    finally:
        query.stop()
    assert found == Counter([("a", 1, 4), ("a", 2, None)])  # (a, 15 s) waits for the next marker
    last = metrics_in(tmp_path)[-1]
    assert str(last.held).startswith("held by input 1 since")
    assert last.watermark == instant(BEGIN + 14 * SECOND)
    assert not written(spark, tmp_path, "late", "k")


@pytest.mark.parametrize(
    "stamped", quick(["processing_time", "ingestion_time"], nightly=["processing_time"])
)
def test_windows_of_processing_time(
    spark: SparkSession, tmp_path: Path, sides: list[DataFrame], stamped: str
) -> None:
    """Every row is in one window, which ends without another row."""
    left, right = (getattr(gw.stream(side), stamped)().key_by("k") for side in sides)
    in_processing_time = stamped == "processing_time"
    windows = (
        gw.TumblingProcessingTimeWindows if in_processing_time else gw.TumblingEventTimeWindows
    )
    both = left.co_group(right).window(windows.of("2 seconds"))
    made = both.with_outputs().aggregate(left={"ours": gw.count()}, right={"its": gw.count()})
    query = gw.write_stream(made, str(tmp_path / "out"), str(tmp_path / "state"))
    try:
        counts = _counts(query, spark, tmp_path)
    finally:
        query.stop()
    assert counts == (3, 5)
    assert not written(spark, tmp_path, "late", "k")


@pytest.mark.parametrize("keyed_by", quick([("k",), ()], nightly=[()]))
def test_an_interval_join_by_the_clock(
    spark: SparkSession, tmp_path: Path, sides: list[DataFrame], keyed_by: tuple[str, ...]
) -> None:
    """All rows of a micro-batch arrive at the same time, those of others at another."""
    both: list[Any] = [gw.stream(side).ingestion_time() for side in sides]
    left, right = (side.key_by(*keyed_by) for side in both) if keyed_by else both
    joined = left.interval_join(right) if keyed_by else left.interval_join_all(right)
    made = joined.between("0 s", "0 s").with_outputs().select(["k", "v"], ["k", "v"])
    assert ("one task joins them" in made.explain()) == (not keyed_by)
    wanted = Counter(
        (k, v, other, w)
        for ours, its in zip(LEFT, RIGHT, strict=True)
        for (k, _, v), (other, _, w) in product(ours, its)
        if k == other or not keyed_by
    )
    query = gw.write_stream(made, str(tmp_path / "out"), str(tmp_path / "state"))
    try:
        deadline, found = time.monotonic() + 120, Counter[Any]()
        while found != wanted:
            assert time.monotonic() < deadline, (found, query.exception())
            time.sleep(0.3)
            found = written(spark, tmp_path, "result", "left_k", "left_v", "right_k", "right_v")
    finally:
        query.stop()


@pytest.mark.thorough
def test_an_interval_join_without_a_key(
    spark: SparkSession, tmp_path: Path, sides: list[DataFrame]
) -> None:
    left, right = (
        gw.stream(side).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        for side in sides
    )
    pairs = left.interval_join_all(right).between("-2 s", "2 s")
    run_to_the_end(pairs.with_outputs().select(["v"], ["v"]), tmp_path)
    found = written(spark, tmp_path, "result", "left_v", "right_v")
    assert found == Counter([(1, 4), (3, 5), (3, 8)])  # the right row of 30 s is late


def _counts(query: Any, spark: SparkSession, folder: Path) -> tuple[int, int]:
    """Return how many rows of each side have come in windows, when none is missing."""
    deadline, counts = time.monotonic() + 120, (0, 0)
    while sum(counts) < 8:
        assert time.monotonic() < deadline, (counts, query.exception())
        time.sleep(0.3)
        found = written(spark, folder, "result", "ours", "its")
        counts = (
            sum(row[0] for row in found.elements()),
            sum(row[1] for row in found.elements()),
        )
    return counts


@pytest.mark.thorough
def test_the_state_of_a_join(tmp_path: Path, sides: list[DataFrame]) -> None:
    kinds = {"left", "right", "left at end"}  # right rows met others at once
    left, right = map(keyed, sides)
    pairs = left.interval_join(right).between("-5 seconds", "60 seconds")
    run_to_the_end(
        pairs.options(shards=1).with_outputs().select(["v"], ["v"], how="full"),
        tmp_path,
    )
    held = gw.read_state(tmp_path / "state")
    rows = {each.table: each.counts["rows"] for each in held.tables if "rows" in each.counts}
    assert rows.keys() == kinds
    kept = sum(count for kind, count in rows.items() if not kind.endswith("at end"))
    assert kept == 5  # all left rows, and right rows of 32 s and 33 s
    shown = CliRunner().invoke(app, ["state", str(tmp_path / "state")], env={"COLUMNS": "160"})
    assert shown.exit_code == 0, shown.stderr
    lines = [line.strip() for line in shown.stdout.splitlines()]
    assert all(any(line.startswith(f"{kind} ") for line in lines) for kind in kinds)
