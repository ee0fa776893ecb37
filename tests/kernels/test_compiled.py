"""The CUDA kernels as they are compiled (`tests.compiled`), against the CPU kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.ptx

TESTS = Path(__file__).parents[1]
#: What the simulator runs too, but for what is about the simulator.
_NAMES = "encoding joins kernels keys lengths moments over ranges sketches texts"
SHARED = [TESTS / "simulator" / f"{name}_equal.py" for name in _NAMES.split()]
OF_THE_SIMULATOR = [
    f"tests/simulator/kernels_equal.py::{name}"
    for name in ("test_the_simulator_is_what_runs", "test_an_exhausted_device_is_a_typed_error")
]
#: Of what is checked on a device, what is about our kernels: staging and the driver are not.
ON_DEVICE = [TESTS / "gpu" / f"test_{name}_gpu.py" for name in ("joins", "kernels", "keys")]


def _run(*arguments: str) -> None:
    """Run tests in a process of its own, which a bad access may end."""
    command = [
        *(sys.executable, "-m", "pytest", "-p", "tests.compiled.plugin", "-q", "-x"),
        *("-p", "no:cacheprovider", *arguments),
    ]
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "0"}
    run = subprocess.run(
        command, cwd=TESTS.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-8_000:] + run.stderr[-4_000:]


@pytest.mark.thorough
@pytest.mark.timeout(900)  # a minute where nothing else runs
@pytest.mark.hypothesis  # property tests in a child, with the profile of this run
def test_compiled_kernels_equal_cpu_kernels() -> None:
    own = [TESTS / "compiled" / f"{name}_equal.py" for name in ("harness", "cudf")]
    left_out = [f"--deselect={node}" for node in OF_THE_SIMULATOR]
    _run("--every-kernel", "-m", "slow or not slow", *left_out, *map(str, (*own, *SHARED)))


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.hypothesis
def test_what_is_checked_on_a_device_passes_without_one() -> None:
    _run("-m", "gpu", "-k", "not exhausted", *map(str, ON_DEVICE))


@pytest.mark.parametrize(
    "families",
    [
        pytest.param("sliding session interval_join sql_over", marks=pytest.mark.thorough),
        pytest.param("", marks=[pytest.mark.slow, pytest.mark.timeout(3_600)]),
    ],
)
def test_recorded_runs_of_flink_on_compiled_kernels(families: str) -> None:
    """Some families, or all of them."""
    golden = TESTS / "golden"
    folders = [golden / name for name in families.split()] or [
        each for each in golden.iterdir() if next(each.glob("*.json"), None)
    ]
    command = [sys.executable, "-m", "tests.compiled.conformance", *map(str, folders)]
    run = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-8_000:] + run.stderr[-4_000:]
    assert '"passed"' in run.stdout
