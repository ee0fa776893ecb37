"""The benchmark that shows how cost grows with state."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import suite
from benchmarks.contest import Window
from benchmarks.data import DataSet
from benchmarks.growth import DIRECTIONS
from benchmarks.runner import run
from benchmarks.stage import Resources


@pytest.mark.slow
def test_growth_shows_the_ratios_of_every_direction(tmp_path: Path) -> None:
    benchmark = suite.load("growth")
    with Resources(DataSet(320, 1), tmp_path) as resources:
        report = run(benchmark, resources, Window.of("1 minute"), peers=(), repeats=1)
    assert [m.contestant for m in report.measurements] == list(benchmark.contestants)
    first, *lines = report.notes
    assert first.startswith("CPU seconds at 1x, 4x and 16x")
    assert {line.partition(":")[0] for line in lines} >= set(DIRECTIONS)
    counts = [count for m in report.measurements[:3] for count in m.details.values()]
    assert counts == [2, 8, 32]
