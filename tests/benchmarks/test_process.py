"""The benchmark of process functions in memory: all ways give the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import suite
from benchmarks.contest import Window
from benchmarks.runner import run
from benchmarks.stage import Resources
from benchmarks.stream_data import StreamData

pytest.importorskip("pyspark", reason="needs the extra `spark`")


@pytest.mark.slow
def test_all_ways_agree(tmp_path: Path) -> None:
    benchmark = suite.load("process")
    with Resources(StreamData(2_000, 50), tmp_path) as resources:
        report = run(benchmark, resources, Window.of(benchmark.size), peers=(), repeats=2)
    assert [m.contestant for m in report.measurements] == list(benchmark.contestants)
    assert "times a group-by by NumPy" in "".join(benchmark.summary(report.measurements))


@pytest.mark.thorough
def test_timers_are_due_in_order_however_many_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark = suite.load("timers")
    monkeypatch.setattr(f"{benchmark.summary.__module__}._FILL", 2_000)
    with Resources(StreamData(10, 10), tmp_path) as resources:
        report = run(benchmark, resources, Window.of(benchmark.size), peers=(), repeats=3)
    *each, ratio = benchmark.summary(report.measurements)
    assert [line.split(":")[0] for line in each] == list(benchmark.contestants)
    assert "read calls" in each[0]
    assert "times as much, at most 3" in ratio
