"""The CUDA kernels against the CPU kernels, without a GPU: their PTX runs here (`tests.ptx`)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

pytestmark = pytest.mark.ptx(runs=True)

TESTS = Path(__file__).parents[1]
OWN, GOLDEN = TESTS / "ptx", TESTS / "golden"
#: Of what is checked on a device, what is about our kernels: staging and the driver are not.
ON_DEVICE = [TESTS / "gpu" / f"test_{name}_gpu.py" for name in ("joins", "kernels", "keys")]


def _run(*arguments: str) -> None:
    """Run tests in a process of its own, in which the pretended device is installed."""
    command = [
        *(sys.executable, "-m", "pytest", "-p", "tests.ptx.plugin", "-q", "-x"),
        *("-p", "no:cacheprovider", *arguments),
    ]
    run = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-8_000:] + run.stderr[-4_000:]


def test_the_ptx_of_a_kernel_gives_what_the_cpu_kernel_does() -> None:
    """Of one module; `make check` takes all of them."""
    _run(str(OWN / "keys_equal.py"), "-k", "many_rows")


@pytest.mark.thorough
@pytest.mark.timeout(1_800)  # four minutes where nothing is compiled yet
@pytest.mark.hypothesis  # property tests in a child, with the profile of this run
def test_the_ptx_of_kernels_gives_what_cpu_kernels_and_flink_do() -> None:
    """One after the other: what a C compiler makes of PTX is then there for both."""
    checks = sorted(OWN.glob("*_equal.py"))
    lane = [] if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else ["-m", "not slow"]
    _run("--every-kernel", *lane, *map(str, checks))
    _replay(GOLDEN / family for family in ("sliding", "session", "interval_join", "sql_over"))


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.hypothesis
def test_what_is_checked_on_a_device_passes_without_one() -> None:
    _run("-m", "gpu", "-k", "not exhausted", *map(str, ON_DEVICE))


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_recorded_runs_of_flink_on_ptx() -> None:
    _replay(each for each in GOLDEN.iterdir() if next(each.glob("*.json"), None))


def _replay(folders: Iterable[Path]) -> None:
    command = [sys.executable, "-m", "tests.ptx", *map(str, folders)]
    run = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-8_000:] + run.stderr[-4_000:]
    assert '"passed"' in run.stdout
