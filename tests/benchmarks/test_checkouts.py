"""The comparison of the streaming engines of two checkouts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from benchmarks.engines.streams import StateSize
from benchmarks.streams import MicroBatch

for package in ("duckdb", "polars", "pyspark"):
    pytest.importorskip(package, reason="needs the extra `benchmarks`")

from benchmarks import checkout_turn, checkouts  # noqa: E402


def micro_batch(rows: int, seconds: float, cpu: float, compilers: float) -> MicroBatch:
    return MicroBatch(0.0, rows, seconds, cpu, compilers, StateSize(0, 0, 0), {})


def test_figures_are_means_without_the_compilers() -> None:
    counted = [micro_batch(1_000, 1.0, 3.0, 1.0), micro_batch(3_000, 2.0, 7.0, 1.0)]
    assert checkout_turn.means(counted) == {
        "cpu_s_a_million_rows": pytest.approx(8 / 0.004),
        "compiler_s_a_million_rows": pytest.approx(2 / 0.004),
        "ms_a_micro_batch": pytest.approx(1_500),
    }


def test_the_inputs_of_a_join_share_the_rows() -> None:
    for name, case in checkout_turn.CASES.items():
        inputs = case.data(1_000, 10).inputs
        assert len(inputs) == (2 if name == "interval_join" else 1)
        assert sum(len(make(0)) for make in inputs) == 1_000


def test_the_package_of_the_checkout_comes_first(tmp_path: Path) -> None:
    with checkouts.Checkout("baseline", tmp_path).path() as path:
        first, second = path.split(os.pathsep)
        (link,) = Path(first).iterdir()
        assert (link.name, link.readlink()) == ("gpu_windows", tmp_path / "gpu_windows")
        assert Path(second) == checkouts.ROOT


def test_checkouts_take_turns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def turn(checkout: checkouts.Checkout, case: str, sizes: Any) -> list[dict[str, float]]:
        assert case == "over"
        asked.append(checkout.name)
        seconds = len(asked) * (2.0 if checkout.name == "this" else 1.0)
        return [dict.fromkeys(checkouts._FIGURES.values(), seconds) for _ in sizes]

    monkeypatch.setattr(checkouts, "turn", turn)
    both = [checkouts.Checkout("baseline", tmp_path), checkouts.Checkout("this", tmp_path)]
    size = checkout_turn.Size(1_000, 10, 2, 4)
    rows = checkouts.compare(both, "over", [size], 3, Console(quiet=True))
    assert asked == ["baseline", "this", "this", "baseline", "baseline", "this"]
    assert [row["checkout"] for row in rows] == ["baseline", "this"]
    assert [checkouts.median(row, "ms_a_micro_batch") for row in rows] == [4.0, 6.0]
    assert checkouts.table(rows).row_count == 1


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["--baseline", str(checkouts.ROOT), "--only", "sums"], "a case must be one of"),
        (["--baseline", str(checkouts.ROOT / "docs")], "a checkout has gpu_windows"),
    ],
)
def test_bad_arguments_are_refused(arguments: list[str], rule: str) -> None:
    shown = CliRunner().invoke(checkouts.app, arguments, env={"COLUMNS": "200"})
    assert shown.exit_code == 2
    assert rule in " ".join(shown.output.split())


@pytest.mark.slow
def test_a_checkout_is_compared_with_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(checkouts, "_SMALL_ROWS", 100)
    file = tmp_path / "checkouts.json"
    arguments = [
        "--baseline",
        str(checkouts.ROOT),
        "--rows",
        "400",
        "--keys",
        "7",
        "--batches",
        "1",
    ]
    shown = CliRunner().invoke(
        checkouts.app, [*arguments, "--turns", "1", "--only", "tumbling", "--json", str(file)]
    )
    assert shown.exit_code == 0, shown.output
    rows = json.loads(file.read_text())["rows"]
    assert [(row["checkout"], row["rows"]) for row in rows] == [
        ("baseline", 400),
        ("this", 400),
        ("baseline", 100),
        ("this", 100),
    ]
    assert all(row["turns"][0]["cpu_s_a_million_rows"] > 0 for row in rows)
