"""What checkpoints hold is what is known of the rows that went in."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.checkpoints import Holding, Timers
from gpu_windows.operators.state import store as stores
from tests.lanes import quick
from tests.spark_glue.streams import (
    ASSIGNERS,
    SECOND,
    batches,
    files,
    outputs_of,
    streamed,
    windowed,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOW = {"availableNow": True}
GAP = 4 * SECOND
#: Of a sliding window: its size and its slide.
SLIDING = {
    "sliding": (60 * SECOND, 15 * SECOND),
    "fine": (60 * SECOND, 2 * SECOND),
    "evictor": (60 * SECOND, 30 * SECOND),
}

#: A row in a window: its key, and the window's start and end.
Pane = tuple[int, int, int]


@pytest.fixture(scope="module")
def checkpoint(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], str]:
    """Return the checkpoint of a query, by name, of all rows of `batches`: each is run once."""
    folder = tmp_path_factory.mktemp("state")
    files(folder / "in", batches())

    @cache
    def of(name: str) -> str:
        outputs = outputs_of(name, streamed(spark, folder / "in"))
        path = str(folder / name)
        gw.write_stream(
            outputs, str(folder / f"out of {name}"), path, trigger=NOW
        ).awaitTermination()
        return path

    return of


def watermarks(tables: list[pa.Table]) -> list[int]:
    """Return the watermark of every micro-batch, in ticks: 0 in the first, then one at the end."""
    latest, found = 0, [0]
    for table in tables:
        latest = max(latest, *(at for at in times(table) if at is not None))
        found.append((latest // 1_000 - 5_000) * 1_000)
    return found


def times(table: pa.Table) -> list[int | None]:
    found: list[int | None] = table["ts"].cast(pa.int64()).to_pylist()
    return found


def panes(name: str, tables: list[pa.Table]) -> list[tuple[int, Pane]]:
    """Return the rows of all windows that are open in the end, each with its number."""
    size, slide = SLIDING[name]
    marks = watermarks(tables)
    found: list[tuple[int, Pane]] = []
    for table, watermark in zip(tables, marks, strict=False):
        rows = zip(table["seq"].to_pylist(), table["k"].to_pylist(), times(table), strict=True)
        for row, key, at in rows:
            if at is None:
                continue
            last = at - at % slide
            ends = range(last + slide, last + size + 1, slide)
            found += [(row, (key, end - size, end)) for end in ends if end > watermark]
    return [pane for pane in found if pane[1][2] > marks[-1]]


def open_sessions(tables: list[pa.Table]) -> list[list[int]]:
    """Return the times of the rows of every session that is open in the end."""
    marks = watermarks(tables)
    by_key: dict[int, list[int]] = {}
    for table, watermark in zip(tables, marks, strict=False):
        for key, at in zip(table["k"].to_pylist(), times(table), strict=True):
            if at is not None and at + GAP > watermark:
                by_key.setdefault(key, []).append(at)
    found: list[list[int]] = []
    for rows in by_key.values():
        session: list[int] = []
        for at in sorted(rows):
            if session and at > session[-1] + GAP:
                found.append(session)
                session = []
            session.append(at)
        found.append(session)
    return [session for session in found if session[-1] + GAP > marks[-1]]


def held(holdings: tuple[Holding, ...], kind: str) -> Holding:
    (found,) = (each for each in holdings if each.kind == kind)
    return found


@pytest.mark.smoke
@pytest.mark.parametrize(
    "of", quick([("sliding", 1), ("fine", 3)], ("fine", 3), nightly=[("sliding", 1)])
)
def test_slices(spark: SparkSession, checkpoint: Callable[[str], str], of: tuple[str, int]) -> None:
    name, width = of
    state = gw.read_state(spark, checkpoint(name))
    tables, slide = batches(), SLIDING[name][1]
    # a slice is there as long as the last window that it is in
    last = dict(panes(name, tables))
    slices = {(key, start) for key, start, _ in last.values()}
    found = held(state.kinds, "slices")
    assert found.counts == {"slices": len(slices), "rows": len(last)}
    assert found.keys == len({key for key, _ in slices})
    starts = {start for _, start in slices}
    assert (found.start, found.end) == (min(starts), max(starts) + slide)
    assert (state.watermark, state.next_watermark) == (watermarks(tables)[-1],) * 2
    assert (state.batch, state.timers_of, state.version) == (
        len(tables),
        "EventTime",
        stores.VERSION,
    )
    assert state.query["window"] == f"sliding 1 min every {slide // SECOND} s, event time"
    assert (state.query["shards"], state.query["strategy"]) == ("5", "slices")
    assert state.query["results"].startswith("k int64, window_start int64, window_end int64, n ")
    buckets = [each for each in state.buckets if each.kind == "slices"]
    assert {each.bucket for each in buckets} == {start // slide // width for start in starts}
    for each in buckets:
        mine = [at for at in slices if at[1] // slide // width == each.bucket]
        assert (each.keys, each.counts["slices"]) == (len({key for key, _ in mine}), len(mine))
        assert each.start == min(start for _, start in mine)
        assert each.end == max(start for _, start in mine) + slide
    next_window = -(-watermarks(tables)[-1] // slide) * slide
    assert state.timers == Timers(found.shards, next_window, next_window)


@pytest.mark.thorough
def test_shards_and_buckets_are_parts_of_the_whole(
    spark: SparkSession, checkpoint: Callable[[str], str]
) -> None:
    state = gw.read_state(spark, checkpoint("sliding"))
    assert len({shard.shard for shard in state.shards}) == len(state.shards) == 5
    for whole in state.kinds:
        of_shards = [each for shard in state.shards for each in shard.kinds]
        for parts in (of_shards, state.buckets):
            some = [each for each in parts if each.kind == whole.kind]
            assert sum(each.size for each in some) == whole.size
            for name, count in whole.counts.items():
                assert sum(each.counts[name] for each in some) == count
        some = [each for each in of_shards if each.kind == whole.kind]
        assert sum(each.blobs for each in some) == whole.blobs
        assert sum(each.keys or 0 for each in some) == (whole.keys or 0)
    assert sum(shard.timers.count for shard in state.shards) == state.timers.count


@pytest.mark.thorough
def test_rows_that_wait(spark: SparkSession, checkpoint: Callable[[str], str]) -> None:
    """What a micro-batch brought to a shard is kept until nothing of it waits."""
    state = gw.read_state(spark, checkpoint("evictor"))
    known, slide = panes("evictor", batches()), SLIDING["evictor"][1]
    last = dict(known)  # the last window of a row begins with its slice
    starts = {start for _, start, _ in last.values()}
    found = held(state.kinds, "waiting")
    every = sum(at is not None for table in batches() for at in times(table))
    assert len(last) <= found.counts["rows"] < every
    assert found.start is not None
    assert found.start <= min(starts)
    assert found.end == max(starts) + slide
    assert state.timers.earliest == min(end for _, (_, _, end) in known)


@pytest.mark.thorough
def test_sessions(spark: SparkSession, checkpoint: Callable[[str], str]) -> None:
    state = gw.read_state(spark, checkpoint("sessions"))
    known = open_sessions(batches())
    counts = held(state.kinds, "head").counts
    assert (counts["windows"], counts["rows"]) == (len(known), sum(map(len, known)))
    assert 0 < counts["keys"] <= len(known)
    assert held(state.kinds, "windows").counts["entries"] >= len(known)
    first = min(session[-1] for session in known) + GAP  # Spark's timers are of milliseconds
    assert state.timers.earliest is not None
    assert (
        state.timers.earliest <= -(-first // 1_000) * 1_000
    )  # one that was put off may be earlier


@pytest.mark.thorough
def test_an_earlier_micro_batch(spark: SparkSession, checkpoint: Callable[[str], str]) -> None:
    state = gw.read_state(spark, checkpoint("sliding"), batch=0)
    first = batches()[:1]
    rows = [at for at in times(first[0]) if at is not None]
    assert held(state.kinds, "slices").counts["rows"] == len(rows)
    assert (state.batch, state.watermark) == (0, None)
    assert state.next_watermark == watermarks(first)[-1]


@pytest.mark.thorough
def test_a_query_that_runs(spark: SparkSession, tmp_path: Path) -> None:
    tables = batches(3)
    files(tmp_path / "in", tables)
    reached, go_on = threading.Event(), threading.Event()

    def sink(results: DataFrame, _: DataFrame, number: int) -> None:
        results.count()
        if number == 1:
            reached.set()
            assert go_on.wait(120)

    source = streamed(spark, tmp_path / "in")
    outputs = windowed(source, ASSIGNERS["tumbling"]).outputs(n=gw.count())
    query = gw.write_stream(outputs, sink, str(tmp_path / "state"), trigger=NOW)
    try:
        assert reached.wait(120)
        before = content(tmp_path / "state")
        state = gw.read_state(spark, str(tmp_path / "state"))
        assert content(tmp_path / "state") == before
    finally:
        go_on.set()
        query.awaitTermination()
    rows = [at for at in times(tables[0]) if at is not None]
    assert held(state.kinds, "slices").counts["rows"] == len(rows)
    assert state.batch == 0
    assert gw.read_state(spark, str(tmp_path / "state")).batch == 3


def content(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}
