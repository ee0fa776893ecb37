"""Metrics for Prometheus: names, labels and values; served while a query runs."""

from __future__ import annotations

import json
import re
import socket
import urllib.request
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gpu_windows as gw
from gpu_windows.monitoring.progress import BatchMetrics, HeldWatermark, QueryMetrics
from gpu_windows.monitoring.prometheus import FAMILIES, QueryCollector
from gpu_windows.operators.counters import Counters
from tests.monitoring.test_observability import wait_until
from tests.spark_glue.stream_runs import batches, files, outputs_of, streamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[2] / "docs"
AT = datetime(2026, 5, 1, tzinfo=UTC)
COUNTERS = Counters(rows=10, late=2, future_timestamp=1, fired=3, cpu_batches=4, user=(("x", 7),))
LAST = BatchMetrics(5, 2.0, AT, COUNTERS, 3, 500.0, 250.0, 9, 1024, "cpu")


@dataclass
class Fake:
    """Has metrics of queries."""

    queries: dict[str, QueryMetrics]


def samples(fake: Fake) -> dict[tuple[str, ...], float]:
    """Return the values that a registry has: names and values of labels, to numbers."""
    client = pytest.importorskip("prometheus_client", reason="it is of the extra `prometheus`")
    registry = client.CollectorRegistry()
    registry.register(QueryCollector(fake))
    text = client.generate_latest(registry).decode()
    found = {}
    for name, labels, value in re.findall(r"^(\w+)\{(.*)\} (\S+)$", text, re.MULTILINE):
        by_name = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        first = by_name.pop("query"), by_name.pop("target")
        found[name, *first, *by_name.values()] = float(value)
    return found


def test_values_of_a_query() -> None:
    found = samples(Fake({"1": QueryMetrics("totals").plus(LAST).plus(replace(LAST, number=6))}))
    query = ("totals", "")
    assert found["gpu_windows_rows_total", *query] == 20
    assert found["gpu_windows_rows_dropped_total", *query, "late"] == 4
    assert found["gpu_windows_rows_dropped_total", *query, "gap"] == 0
    assert found["gpu_windows_micro_batch_seconds_total", *query] == 4.0
    assert found["gpu_windows_kernel_seconds_total", *query] == 1.0
    assert found["gpu_windows_state_bytes", *query] == 1024
    assert found["gpu_windows_last_micro_batch", *query] == 6
    assert found["gpu_windows_watermark_timestamp_seconds", *query] == AT.timestamp()
    assert found["gpu_windows_user_counter_total", *query, "x"] == 14
    assert ("gpu_windows_watermark_holder_input", *query) not in found


def test_queries_of_one_name_and_their_targets() -> None:
    held = HeldWatermark(None, None, None)
    stages = {"minutes": replace(LAST, watermark=None, held=held)}
    ended = QueryMetrics("totals").plus(LAST).plus(LAST).end(None)
    again = QueryMetrics("totals").plus(replace(LAST, stages=stages))
    found = samples(Fake({"1": ended, "2": again, "3": QueryMetrics("new").end("failed")}))
    assert found["gpu_windows_micro_batches_total", "totals", ""] == 1
    assert found["gpu_windows_micro_batches_total", "totals", "minutes"] == 1
    assert found["gpu_windows_watermark_holder_input", "totals", "minutes"] == 0
    assert ("gpu_windows_watermark_timestamp_seconds", "totals", "minutes") not in found
    assert found["gpu_windows_query_active", "totals", "minutes"] == 1
    assert found["gpu_windows_query_active", "new", ""] == 0
    assert ("gpu_windows_shards", "new", "") not in found
    over = samples(Fake({"2": again.end(None)}))
    assert over["gpu_windows_query_active", "totals", "minutes"] == 0


def names() -> set[str]:
    """Return the names of all metrics, as Prometheus has them."""
    return {f"gpu_windows_{f.name}{'_total' * (f.kind == 'counter')}" for f in FAMILIES}


def test_the_page_has_every_metric_and_the_dashboard_no_other() -> None:
    page = (DOCS / "prometheus.md").read_text()
    table = {n for line in page.splitlines() if line[:3] == "| `" for n in _names_in(line)}
    assert table == names()
    assert _names_in(page) <= names()
    dashboard = json.loads((DOCS / "prometheus" / "dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert asked
    assert all(_names_in(each) for each in asked)
    assert _names_in(json.dumps(dashboard)) <= names()


def _names_in(text: str) -> set[str]:
    return set(re.findall(r"\bgpu_windows_\w+", text))


@pytest.mark.thorough
def test_metrics_are_served_while_a_query_runs(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client", reason="it is of the extra `prometheus`")
    files(tmp_path / "in", batches(2, 50))
    listener = gw.MetricsListener()
    spark.streams.addListener(listener)
    with listener.serve(0) as server:
        url = f"http://127.0.0.1:{server.port}/metrics"
        with pytest.raises(OSError, match="refused"):  # another address of this machine
            socket.create_connection(("127.0.0.2", server.port), timeout=10)
        outputs = outputs_of("sliding", streamed(spark, tmp_path / "in"))
        once = {"availableNow": True}
        query = gw.write_stream(
            outputs, tmp_path / "out", tmp_path / "state", name="totals", trigger=once
        )
        query.awaitTermination()

        def read() -> str:
            with urllib.request.urlopen(url, timeout=10) as answer:
                text: str = answer.read().decode()
            return text

        ended = 'gpu_windows_query_active{query="totals",target=""} 0.0'
        wait_until(lambda: ended in read())
        rows = listener.of(query).counters.rows
        assert rows > 0
        assert f'gpu_windows_rows_total{{query="totals",target=""}} {float(rows)}' in read()
    spark.streams.removeListener(listener)
    with pytest.raises(OSError, match="refused"):
        read()
