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


def test_all_ways_agree(tmp_path: Path) -> None:
    benchmark = suite.load("process")
    with Resources(StreamData(2_000, 50), tmp_path) as resources:
        report = run(benchmark, resources, Window.of(benchmark.size), peers=(), repeats=2)
    assert [m.contestant for m in report.measurements] == list(benchmark.contestants)
    assert "times a group-by by NumPy" in "".join(benchmark.summary(report.measurements))
