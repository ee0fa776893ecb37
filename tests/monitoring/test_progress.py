"""What micro-batches measured: kept in commits, read by query, summed up and shown."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from rich.console import Console

import gpu_windows as gw
from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.errors import QueryError
from gpu_windows.monitoring.live import line
from gpu_windows.monitoring.progress import BatchMetrics, HeldWatermark, QueryMetrics
from gpu_windows.monitoring.queries import last_delivered, read_metrics, watch_commits
from gpu_windows.operators.counters import Counters
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.watermarks import CombinedWatermark, InputProgress

pytest.importorskip("pyspark.sql.streaming.listener")

COUNTERS = Counters(
    rows=400,
    late=8,
    gap=1,
    null_timestamp=3,
    out_of_range_timestamp=2,
    future_timestamp=6,
    invalid_session_gap=7,
    fired=131,
    locally_aggregated=380,
    cpu_batches=15,
    cuda_batches=4,
    device_fallbacks=1,
    user=(("bad", 3), ("seen", 8)),
)
WATERMARK = datetime(2023, 11, 14, 22, 14, 14, 946_000, tzinfo=UTC)


def batch(number: int = 0, **changes: Any) -> BatchMetrics:
    made = BatchMetrics(
        number=number,
        seconds=0.5,
        watermark=WATERMARK,
        counters=COUNTERS,
        shards=5,
        kernel_ms=62.5,
        state_ms=12.25,
        state_rows=174,
        state_bytes=86_680,
        device="cpu+cuda",
    )
    return replace(made, **changes)


class Query:
    """A query of a checkpoint, which commits so many micro-batches until each look at it."""

    name = "flights"

    def __init__(
        self, folder: Path, *looks: int, before: int = 0, error: Exception | None = None
    ) -> None:
        self.id = uuid4()
        self.log = CommitLog(LocalFiles(str(folder)))
        self.log.add(StateCommit(sequence=0, lineage="a", facts=""))
        self._check_times, self._error, self._count = list(looks), error, 0
        self.commit(before)
        self.start()

    def start(self) -> None:
        """Have it started on what is there."""
        query: Any = self
        watch_commits(query, self.log, last_delivered(self.log, self.log.last()))

    def commit(self, count: int, *, is_delivered: bool = True) -> None:
        """Commit micro-batches until there are so many."""
        while self._count < count:
            last = self.log.last()
            assert last is not None
            metrics = (*last.metrics, batch(self._count).as_json)
            made = replace(
                last,
                sequence=last.sequence + 1,
                number=self._count,
                metrics=metrics[-16:],
                identity=uuid4().hex,
                parent=last.identity,
            )
            self.log.add(made)
            if is_delivered:
                self.log.mark_delivered(made)
            self._count += 1

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802 - as Spark calls it
        assert timeout == 0.25
        self.commit(self._check_times.pop(0))
        if self._error and not self._check_times:
            raise self._error
        return not self._check_times


@pytest.mark.parametrize(
    "found",
    [
        batch(3),
        batch(0, watermark=None, counters=Counters(), device=""),
        batch(1, held=HeldWatermark(WATERMARK, 2, WATERMARK)),
        batch(1, held=HeldWatermark(None, None, None)),
        batch(2, stages={"minutes": batch(2, state_rows=3), "hours": batch(2, shards=1)}),
    ],
)
def test_metrics_are_read_as_they_were_written(found: BatchMetrics) -> None:
    again = BatchMetrics.from_json(json.loads(json.dumps(found.as_json)))
    assert again == found
    assert again.as_json == found.as_json  # counters that do not take part in equality
    assert again.rows_per_second == found.counters.rows / 0.5


def test_sums() -> None:
    first = batch(4, state_rows=10, state_bytes=100, stages={"minutes": batch(4)})
    minutes = {"minutes": batch(5, state_rows=9)}
    second = batch(5, state_rows=2, state_bytes=50, counters=Counters(1, 2), stages=minutes)
    found = QueryMetrics("flights").plus(first).plus(second)
    assert replace(found.counters, user=()) == Counters(401, 10, 1, 3, 2, 6, 7, 131)
    assert found.counters.user == (("bad", 3), ("seen", 8))
    assert (found.batches, found.seconds, found.kernel_ms, found.state_ms) == (2, 1.0, 125, 24.5)
    assert (found.state_rows, found.state_bytes) == (2, 50)
    assert found.rows_per_second == 401
    assert found.last == second
    of_stage = found.stages["minutes"]
    assert (of_stage.name, of_stage.counters.rows, of_stage.state_rows) == ("minutes", 800, 9)
    assert QueryMetrics("flights").rows_per_second == 0
    assert found.end("it broke") == replace(found, is_active=False, error="it broke")


def test_what_a_start_delivers_is_read(tmp_path: Path) -> None:
    """Not what starts before it have delivered; the last of it may have been committed before."""

    def read(query: Query, after: int | None = None) -> list[int] | None:
        found = read_metrics(str(query.id), after)
        return None if found is None else [each.number for each in found]

    assert read_metrics("of another process") is None
    query = Query(tmp_path)
    assert read(query) == []
    query.commit(2)
    assert read(query) == [0, 1]
    assert read(query, after=0) == [1]
    query.commit(3, is_delivered=False)
    query.start()
    assert read(query) == [2]
    assert read(query, after=0) == [1, 2]  # of whoever has seen less
    query.commit(40)
    assert read(query) == [*range(24, 40)]


# ---- the listener


def test_a_listener_collects(tmp_path: Path) -> None:
    told: list[QueryMetrics] = []
    listener = gw.MetricsListener(told.append)
    query: Any = Query(tmp_path, before=2)
    with pytest.raises(QueryError, match="write_stream, got flights"):
        listener.of(query)
    start: Any = SimpleNamespace(id=query.id, name="flights")
    end: Any = SimpleNamespace(id=query.id, exception="it broke")
    report: Any = SimpleNamespace(progress=SimpleNamespace(id=query.id, name="flights"))
    other: Any = SimpleNamespace(progress=SimpleNamespace(id=uuid4(), name="of another library"))
    listener.onQueryStarted(start)
    for count, event in ((2, report), (3, report), (5, other), (5, report), (5, report)):
        query.commit(count)
        listener.onQueryProgress(event)
    listener.onQueryTerminated(end)
    assert [metrics.batches for metrics in told] == [1, 2, 3, 3]
    assert [metrics.last and metrics.last.number for metrics in told] == [2, 3, 4, 4]
    assert listener.of(query) == told[-1]
    assert (told[-1].name, told[-1].error, told[-1].is_active) == ("flights", "it broke", False)
    query.commit(6)  # and then the driver is told to stop
    query.start()
    listener.onQueryStarted(start)
    again = listener.queries[str(query.id)]
    assert (again.batches, again.error, again.is_active) == (3, None, True)
    listener.onQueryProgress(report)
    assert listener.of(query).batches == 4
    assert [*listener.queries] == [str(query.id)]


# ---- the view


def watched(query: Any, **settings: Any) -> tuple[QueryMetrics, str]:
    console = Console(file=io.StringIO(), width=120, record=True, **settings)
    metrics = gw.watch(query, console=console, every=0.25, beside="and so on")
    return metrics, console.export_text()


def test_without_a_terminal_each_micro_batch_is_a_line(tmp_path: Path) -> None:
    metrics, text = watched(Query(tmp_path, 0, 1, 1, 4, 5))
    lines = [line for line in text.splitlines() if line.startswith("batch ")]
    assert lines == [
        f"batch {number}: 400 rows in 0.50 s (800/s), 8 late, 131 fired, state 174 (86.7 kB), "
        "kernels 62 ms on cpu+cuda, watermark 2023-11-14 22:14:14 UTC"
        for number in range(5)
    ]
    assert (metrics.batches, metrics.counters.rows, metrics.is_active) == (5, 2_000, False)
    assert "flights: ended, 5 micro-batches" in text
    assert "and so on" in text


def test_a_terminal_shows_a_table(tmp_path: Path) -> None:
    _, text = watched(Query(tmp_path, 0, 3), force_terminal=True)
    assert "batch 0:" not in text
    shown = [line.split() for line in text.splitlines()]
    for row in (
        "rows 400 1,200",
        "rows/s 800 800",
        "late 8 24",
        "windows fired 131 393",
        "without a usable time 5 15",
        "too far ahead 6 18",
        "device fallbacks 1 3",
        "device cpu+cuda",
        "watermark 2023-11-14 22:14:14 UTC",
    ):
        assert row.split() in shown
    assert "flights: ended" in text
    assert "and so on" in text


def ms(time: datetime) -> int:
    return round(time.timestamp() * 1_000)


SINCE = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_who_holds_the_watermark() -> None:
    ticks = ms(WATERMARK) * 1_000
    inputs = InputProgress(ticks + 5), InputProgress(ticks)
    held = HeldWatermark.of(CombinedWatermark(inputs, ticks, moved_at=ms(SINCE)))
    assert held == HeldWatermark(WATERMARK, 2, SINCE)
    assert str(held) == "held by input 2 since 2023-11-14 22:13:20"
    assert line(batch(3, held=held)).endswith(
        "watermark 2023-11-14 22:14:14 UTC, held by input 2 since 2023-11-14 22:13:20"
    )
    idle = tuple(replace(each, is_idle=True) for each in inputs)
    moved = ms(SINCE) - 9
    of_none = HeldWatermark.of(CombinedWatermark(idle, ticks, moved_at=moved, idle_since=ms(SINCE)))
    assert (of_none.watermark, of_none.input) == (WATERMARK, None)
    assert str(of_none) == "all inputs idle since 2023-11-14 22:13:20"
    for watermark in (LONG_MIN, LONG_MAX):  # there is none yet; no calendar has it
        assert HeldWatermark.of(CombinedWatermark(inputs, watermark)).watermark is None


def test_a_query_that_fails_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="it broke"):
        watched(Query(tmp_path, 1, 2, error=ValueError("it broke")))


def test_a_query_of_another_process_is_not_watched(tmp_path: Path) -> None:
    query = Query(tmp_path, 1, 2)
    query.id = uuid4()
    with pytest.raises(
        QueryError,
        match="that write_stream has started in this process can be watched, got flights",
    ):
        watched(query)


def test_looks_take_time(tmp_path: Path) -> None:
    query: Any = Query(tmp_path, 1)
    with pytest.raises(QueryError, match=r"must be positive, got 0 s"):
        gw.watch(query, every=0)
