"""The comparison of cold starts of two checkouts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

for package in ("duckdb", "polars", "pyspark"):
    pytest.importorskip(package, reason="needs the extra `benchmarks`")

from benchmarks import checkouts, cold_start  # noqa: E402
from benchmarks.cold_start_turn import Figures  # noqa: E402

STEP = "import gpu_windows"


def test_imports_are_those_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one that sleeps, the seconds are counted and no processor time."""
    package = tmp_path / "gpu_windows"
    package.mkdir()
    (package / "__init__.py").write_text("import time\ntime.sleep(0.5)\n")
    monkeypatch.setattr(cold_start, "STEPS", {STEP: cold_start.STEPS[STEP]})
    figures = cold_start.measure_imports(checkouts.Checkout("other", tmp_path))
    assert figures.keys() == {STEP}
    assert figures[STEP]["seconds"] >= 0.5
    assert figures[STEP]["cpu_s"] < 0.4


def test_medians_of_turns_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def measure_imports(checkout: checkouts.Checkout) -> Figures:
        asked.append(checkout.name)
        seconds = 2.0 if checkout.name == "this" else 1.0
        return {STEP: {"seconds": seconds, "cpu_s": seconds / 2}}

    monkeypatch.setattr(cold_start, "measure_imports", measure_imports)
    monkeypatch.setattr(cold_start, "warm_up", lambda _: None)
    (tmp_path / "gpu_windows").mkdir()
    written = tmp_path / "figures.json"
    arguments = ["--baseline", str(tmp_path), "--rows", "0", "--turns", "3", "--json", str(written)]
    shown = CliRunner().invoke(cold_start.app, arguments)
    assert shown.exit_code == 0, shown.output
    assert asked == ["baseline", "this", "this", "baseline", "baseline", "this"]
    assert "1.000 -> 2.000" in shown.output
    assert "0.500 -> 1.000" in shown.output
    found = json.loads(written.read_text())
    assert len(found["imports"]["this"]) == 3
    assert found["sessions"] == {}


def test_a_baseline_must_be_a_checkout(tmp_path: Path) -> None:
    refused = CliRunner().invoke(cold_start.app, ["--baseline", str(tmp_path)])
    assert refused.exit_code == 2
    assert "a checkout has gpu_windows" in refused.output
