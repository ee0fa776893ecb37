"""What `make gpu` runs of tests, and what it tells of those that fail, hang or crash."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu import checks, recorded, sanitizer
from benchmarks.gpu.pytest_runs import PYTEST, counted, reasons
from benchmarks.gpu.scene import Scene
from benchmarks.gpu.step import is_bad

FOLDER = Path(__file__).parents[1] / "gpu"

#: A test of arrays that are wrong, and what a broken context makes of those that follow.
WRONG = """
import numpy as np, pytest

def test_many_numbers():
    found = np.arange(4_000_000)
    np.testing.assert_array_equal(found, found[::-1])

def test_lists():
    found = list(range(300_000))
    assert found == found[::-1]

@pytest.mark.parametrize("number", range(100))
def test_later(number):
    print("printed " * 200)
    raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")
"""


def _counted(folder: Path, text: str, seconds: float = 60.0) -> dict[str, Any]:
    file = folder / "test_some.py"
    file.write_text(text)
    return counted([*PYTEST, str(file)], seconds)


@pytest.mark.thorough
def test_the_first_failures_are_told_in_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    found = _counted(tmp_path, WRONG)
    assert (found["failed"], found["failed_with"]) == (8, 1)
    assert "Mismatched elements: 4000000 / 4000000" in found["output"]
    assert "At index 0 diff: 0 != 299999" in found["output"]
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in found["output"]
    assert "stopping after 8 failures" in found["output"]
    assert len(found["output"]) < 4_000


@pytest.mark.slow
def test_tests_that_hang_tell_of_those_that_failed(tmp_path: Path) -> None:
    hang = "import time\ndef test_wrong(): assert [1] == [2]\ndef test_hangs(): time.sleep(600)\n"
    found = _counted(tmp_path, hang, 6.0)
    assert found["failed"] == 1
    assert found["failed_with"] == "longer than 6 s"
    assert "assert [1] == [2]" in found["output"]
    assert "KeyboardInterrupt" in found["output"]
    assert is_bad(found)


@pytest.mark.slow
def test_what_ignores_an_interrupt_is_ended() -> None:
    shown = (
        "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "print('a PASSED', 'b PASSED', 'c FAILED', flush=True); time.sleep(600)"
    )
    found = counted([sys.executable, "-c", shown], 2.0)
    assert (found["passed"], found["failed"]) == (2, 1)
    assert found["failed_with"] == "longer than 2 s"


def test_a_crash_tells_where_it_was(tmp_path: Path) -> None:
    found = _counted(tmp_path, "import numpy, os\ndef test_crashes(): os.abort()\n")
    assert found["failed_with"] < 0
    assert found["output"].startswith("Fatal Python error: Aborted")
    assert "in test_crashes" in found["output"]


def test_of_compute_sanitizer_the_first_error_is_told() -> None:
    error = "========= Invalid __global__ read of size 8 bytes\n=========     at fold+0x120"
    shown = f"========= COMPUTE-SANITIZER\na.py::test_small {error}\n{'PASSED' * 2_000}\nthe end"
    assert reasons(shown).startswith("Invalid __global__ read of size 8 bytes\n=========     at ")
    assert reasons(shown).endswith("the end")


def test_small_tests_come_first_and_wait_for_kernels_but_those_of_streams() -> None:
    found = checks.parts(FOLDER)
    assert [part.large for part in found] == [False] * 4 + [True] * 4
    assert {part.file for part in found} == {*FOLDER.glob("test_*.py")}
    assert [part.about for part in found[:2]] == ["staging", "kernels"]
    waiting = {part.about for part in found if part.variables}
    assert waiting == {"kernels", "keys", "joins"}
    assert not any(part.variables for part in found if part.large)


@pytest.mark.thorough
def test_a_file_whose_tests_fail_ends_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    large = "\ndef test_large(): pass\n"
    mark = "import os, pytest\npytestmark = pytest.mark.gpu\n"
    waits = 'def test_small(): assert os.environ.get("CUDA_LAUNCH_BLOCKING") == "1"\n'
    (tmp_path / "test_joins_gpu.py").write_text(f"{mark}{waits}{large}")
    (tmp_path / "test_keys_gpu.py").write_text(f"{mark}def test_small(): os.abort()\n")
    (tmp_path / "test_new_gpu.py").write_text(f'{mark}def test(): pytest.skip("no device")\n')
    monkeypatch.delenv("CUDA_LAUNCH_BLOCKING", raising=False)
    monkeypatch.setattr(checks, "parts", lambda parts=checks.parts: parts(tmp_path))
    found = {row.pop("what"): row for row in checks.run(Scene(dry=False, seconds=60.0))}
    assert found["pytest, small: joins"] == {"passed": 1}
    assert found["pytest, large: joins"] == {"passed": 1}
    skipped = found["pytest, small: new"]
    assert (skipped["failed_with"], skipped["skipped"]) == ("no test passed", 1)
    assert "SKIPPED [1] " in skipped["output"]
    assert "no device" in skipped["output"]
    assert is_bad(found["pytest, small: keys"])
    assert len(found) == 4, "nothing is said of files without large tests"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (90.0, [{"passed": 84}, {"left_out": "6 s are left, it takes 25"}]),
        (20.0, [{"left_out": "20 s are left, it takes 25"}] * 2),
    ],
)
def test_memcheck_may_take_all_the_time(
    seconds: float, told: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Passing(Scene):
        """A scene whose time passes as tools run."""

        spent = 0.0

        @property
        def left(self) -> float:
            return self.seconds - Passing.spent

    def run(_: list[str], given: float, **__: str) -> dict[str, Any]:
        Passing.spent += given
        return {"passed": int(given)}

    monkeypatch.setattr("shutil.which", lambda name: name)
    monkeypatch.setattr(sanitizer, "counted", run)
    found = [*sanitizer.run(Passing(dry=False, seconds=seconds))]
    names = [row.pop("what").split()[-1] for row in found]
    assert names == ["memcheck", "racecheck", "initcheck"]
    assert found[:2] == told
    assert found[2] == found[1]


def test_nothing_of_a_bare_machine_is_imported() -> None:
    """Neither Spark nor what the commands print with."""
    code = (
        "import importlib, json, pkgutil, sys, benchmarks.gpu as gpu\n"
        "names = [info.name for info in pkgutil.iter_modules(gpu.__path__)]\n"
        "for name in names:\n"
        "    importlib.import_module(f'benchmarks.gpu.{name}')\n"
        "print(json.dumps([name for name in ('pyspark', 'rich', 'typer') if name in sys.modules]))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == []


# ---- recorded runs of Flink

SCENARIOS = [
    {"status": "passed", "reason": ""},
    {"status": "skipped", "reason": "Flink loses it"},
    {"status": "failed", "reason": "cuda is not possible: no kernel of a device runs patterns"},
    {"status": "failed", "reason": "", "differences": ["lacks a row"]},
]


def test_scenarios_without_a_kernel_are_counted_apart_from_those_that_differ() -> None:
    counts, differences = recorded.count_outcomes(SCENARIOS)
    assert counts == {"passed": 1, "skipped": 1, "failed": 1, "no kernel": 1}
    assert differences == SCENARIOS[3:]
    row = recorded.summarize(counts, differences, scenarios=9, left_out=5)
    assert is_bad(row)
    assert (row["failed_with"], row["no_kernel"], row["not_begun"]) == ("1 differ", 1, 5)
    assert "lacks a row" in row["output"]
    assert not is_bad(recorded.summarize(counts, [], scenarios=9, left_out=5))


def test_no_chunk_begins_that_could_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "_LEAST", 1_000.0)
    (row,) = recorded.run(Scene(dry=True, seconds=60.0))
    assert row["left_out"] == "60 s are left, it takes 1000"
