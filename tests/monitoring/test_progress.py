"""What is read out of Spark's reports of progress, summed up and shown."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from rich.console import Console

import gpu_windows as gw
from gpu_windows.errors import QueryError
from gpu_windows.monitoring.live import line
from gpu_windows.monitoring.progress import OBSERVATION, BatchMetrics, QueryMetrics
from gpu_windows.operators.counters import Counters

streaming = pytest.importorskip("pyspark.sql.streaming.listener")

ID = UUID(int=7)
MEASURED = {
    "rows": 400,
    "late": 8,
    "gap": 1,
    "null_timestamp": 3,
    "out_of_range_timestamp": 2,
    "future_timestamp": 6,
    "invalid_session_gap": 7,
    "fired": 131,
    "locally_aggregated": 380,
    "cpu_batches": 15,
    "cuda_batches": 4,
    "device_fallbacks": 1,
    "kernel_ms": 62.5,
    "state_ms": 12.25,
    "state_rows": 174,
    "state_bytes": 86_680,
    "state_rows_change": 57,
    "state_bytes_change": 13_784,
    "own_watermark": None,
    "held_by": None,
    "held_since": None,
    "shards": 5,
    "device": "cpu+cuda",
    "user": ['{"bad": 1, "seen": 3}', '{"bad": 2}', '{"seen": 5}'],
}
WATERMARK = datetime(2023, 11, 14, 22, 14, 14, 946_000, tzinfo=UTC)


def report(number: int = 0, watermark: str | None = None, **changes: Any) -> Any:
    """A report of progress, as PySpark makes it of Spark's JSON."""
    event_time = {} if watermark is None else {"watermark": watermark}
    fields: dict[str, Any] = {
        "id": str(ID),
        "runId": str(ID),
        "name": "flights",
        "timestamp": "2023-11-14T22:15:00.000Z",
        "batchId": number,
        "batchDuration": 500,
        "durationMs": {},
        "eventTime": event_time,
        "stateOperators": [],
        "sources": [],
        "sink": {"description": "", "numOutputRows": -1, "metrics": {}},
        "numInputRows": 400,
        "inputRowsPerSecond": 0.0,
        "processedRowsPerSecond": 0.0,
        "observedMetrics": {OBSERVATION: {**MEASURED, **changes}},
    }
    return streaming.StreamingQueryProgress.fromJson(fields)


def batch(number: int = 0, **changes: Any) -> BatchMetrics:
    found = BatchMetrics.of(report(number, **changes))
    assert found is not None
    return found


def test_a_report_is_read() -> None:
    found = BatchMetrics.of(report(3, watermark="2023-11-14T22:14:14.946Z"))
    assert found is not None
    assert replace(found.counters, user=()) == Counters(400, 8, 1, 3, 2, 6, 7, 131)
    assert (found.counters.cpu_batches, found.counters.cuda_batches) == (15, 4)
    assert (found.number, found.seconds, found.watermark) == (3, 0.5, WATERMARK)
    assert (found.state_rows, found.state_bytes_change, found.shards) == (174, 13_784, 5)
    assert (found.kernel_ms, found.state_ms, found.device) == (62.5, 12.25, "cpu+cuda")
    assert found.rows_per_second == 800
    assert found.counters.user == (("bad", 3), ("seen", 8))
    assert batch().watermark is None
    assert batch(watermark="1970-01-01T00:00:00.000Z").watermark is None


def test_a_report_that_connect_gives_as_json_is_read() -> None:
    schema = {"type": "struct", "fields": [{"name": name} for name in MEASURED]}
    asked = report()
    values = {"values": list(MEASURED.values()), "schema": schema}
    asked.observedMetrics[OBSERVATION] = streaming.Row(**values)
    assert BatchMetrics.of(asked) == batch()


def test_other_queries_are_none_of_ours() -> None:
    other = report()
    other.observedMetrics.clear()
    assert BatchMetrics.of(other) is None


def test_sums() -> None:
    first = batch(4, state_rows=10, state_rows_change=3, state_bytes=100, state_bytes_change=30)
    second = batch(5, state_rows=2, state_rows_change=-4, state_bytes=1, state_bytes_change=-50)
    found = QueryMetrics("flights").plus(first).plus(second)
    assert replace(found.counters, user=()) == Counters(800, 16, 2, 6, 4, 12, 14, 262)
    assert found.counters.user == (("bad", 6), ("seen", 16))
    assert (found.batches, found.seconds, found.kernel_ms, found.state_ms) == (2, 1.0, 125, 24.5)
    assert (found.state_rows, found.state_bytes) == (6, 50)
    assert found.rows_per_second == 800
    assert found.last == second
    assert QueryMetrics("flights").rows_per_second == 0
    assert found.ended("it broke") == replace(found, is_active=False, error="it broke")


# ---- the listener


def test_a_listener_collects() -> None:
    told: list[QueryMetrics] = []
    listener = gw.MetricsListener(told.append)
    query: Any = SimpleNamespace(id=ID, name="flights")
    with pytest.raises(QueryError, match="write_stream, got flights"):
        listener.of(query)
    start = SimpleNamespace(id=ID, name="flights")
    end = SimpleNamespace(id=ID, exception="it broke")
    other = report()
    other.observedMetrics.clear()
    listener.onQueryStarted(start)  # type: ignore[arg-type]
    for progress in (report(0), other, report(1)):
        listener.onQueryProgress(SimpleNamespace(progress=progress))  # type: ignore[arg-type]
    listener.onQueryTerminated(end)  # type: ignore[arg-type]
    assert [metrics.batches for metrics in told] == [1, 2, 2]
    assert listener.of(query) == told[-1]
    assert (told[-1].name, told[-1].error, told[-1].is_active) == ("flights", "it broke", False)
    listener.onQueryStarted(start)  # type: ignore[arg-type]
    again = listener.queries[str(ID)]
    assert (again.batches, again.error, again.is_active) == (2, None, True)


# ---- the view


class Query:
    """A query that has made so many micro-batches at each look."""

    id, name = ID, "flights"

    def __init__(self, *looks: int, error: Exception | None = None) -> None:
        self._looks = list(looks)
        self._error = error
        self._reports: list[Any] = []

    @property
    def lastProgress(self) -> Any:  # noqa: N802 - as Spark calls it
        return self._reports[-1] if self._reports else None

    @property
    def recentProgress(self) -> list[Any]:  # noqa: N802
        return self._reports

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802
        assert timeout == 0.25
        count = self._looks.pop(0)
        self._reports = [report(number, WATERMARK.isoformat()) for number in range(count)]
        if self._error and not self._looks:
            raise self._error
        return not self._looks


def watched(query: Any, **settings: Any) -> tuple[QueryMetrics, str]:
    console = Console(file=io.StringIO(), width=120, record=True, **settings)
    metrics = gw.watch(query, console=console, every=0.25, beside="and so on")
    return metrics, console.export_text()


def test_without_a_terminal_each_micro_batch_is_a_line() -> None:
    metrics, text = watched(Query(0, 1, 1, 4, 5))
    lines = [line for line in text.splitlines() if line.startswith("batch ")]
    assert lines == [
        f"batch {number}: 400 rows in 0.50 s (800/s), 8 late, 131 fired, state 174 (86.7 kB), "
        "kernels 62 ms on cpu+cuda, watermark 2023-11-14 22:14:14 UTC"
        for number in range(5)
    ]
    assert (metrics.batches, metrics.counters.rows, metrics.is_active) == (5, 2_000, False)
    assert "flights: ended, 5 micro-batches" in text
    assert "and so on" in text


def test_a_terminal_shows_a_table() -> None:
    _, text = watched(Query(0, 3), force_terminal=True)
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


HELD = {"own_watermark": 1_700_000_094_946_000, "held_by": 2, "held_since": 1_700_000_000_000}


def test_who_holds_the_watermark() -> None:
    found = batch(3, **HELD)
    assert found.held is not None
    assert (found.watermark, found.held.input) == (found.held.watermark, 2)
    assert str(found.held) == "held by input 2 since 2023-11-14 22:13:20"
    assert line(found).endswith(
        "watermark 2023-11-14 22:14:54 UTC, held by input 2 since 2023-11-14 22:13:20"
    )
    untold = QueryMetrics("flights").plus(found).plus(batch(4))  # no shard was called
    assert untold.last is not None
    assert (untold.last.number, untold.last.watermark) == (4, found.watermark)
    assert untold.last.held == found.held
    idle = batch(5, own_watermark=None, held_by=0, held_since=1_700_000_000_000)
    assert idle.held is not None
    assert (idle.watermark, idle.held.input) == (None, None)
    assert str(idle.held) == "all inputs idle since 2023-11-14 22:13:20"
    far = batch(6, **{**HELD, "own_watermark": (1 << 63) - 1})
    assert far.watermark is None


def test_a_query_that_fails_is_told() -> None:
    with pytest.raises(ValueError, match="it broke"):
        watched(Query(1, 2, error=ValueError("it broke")))


def test_looks_take_time() -> None:
    query: Any = Query(1)
    with pytest.raises(QueryError, match=r"must be positive, got 0 s"):
        gw.watch(query, every=0)
