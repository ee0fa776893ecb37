"""The CUDA kernels against the CPU kernels, without a GPU: Numba's simulator runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Of the run, and in the simulator, which is slow: the examples of `test_compiled` are many.
PROFILES = {"ci": "simulated quick", "quick": "simulated quick", "nightly": "simulated"}
CHECKS = [*(Path(__file__).parents[1] / "simulator").glob("*_equal.py")]


@pytest.mark.timeout(900)  # three minutes where nothing else runs
@pytest.mark.thorough
@pytest.mark.hypothesis  # property tests in a child, with the profile of this run
def test_cuda_kernels_equal_cpu_kernels_in_the_simulator() -> None:
    """Run `tests.simulator` in a process of its own: Numba reads the variable when imported."""
    profile = os.environ.get("HYPOTHESIS_PROFILE", "ci")
    lane = [] if profile == "quick" else ["-m", "not slow"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        *lane,
        *map(str, CHECKS),
    ]
    environment = os.environ | {
        "NUMBA_ENABLE_CUDASIM": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "HYPOTHESIS_PROFILE": PROFILES.get(profile, profile),
    }
    root = Path(__file__).parents[2]
    run = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
