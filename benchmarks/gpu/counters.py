"""The hardware's counters of three kernels, as Nsight Compute reads them."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.gpu.scene import Row, Scene
from benchmarks.gpu.sizes import KERNELS
from gpu_windows.kernels.backend import select

#: What is profiled, of `KERNELS`.
PROFILED = ("assign", "combine, span 1,000", "reduce")
_SECTIONS = ("SpeedOfLight", "LaunchStats", "Occupancy", "WarpStateStats")
#: The clocks are left as they are.
_NCU = ("ncu", "--clock-control", "none", "--csv", "--launch-count", "12")
_KERNELS = "regex:assign|scan_fold|fold"


def run(scene: Scene) -> Iterator[Row]:
    """Yield a metric of a launch at a time."""
    if shutil.which("ncu") is None:
        yield {"what": "ncu", "missing": "ncu on PATH"}
    if scene.dry:
        launch(scene)
    if scene.dry or shutil.which("ncu") is None:
        return
    sections = [part for section in _SECTIONS for part in ("--section", section)]
    target = [sys.executable, "-m", "benchmarks.gpu.step", "--profiled"]
    command = [*_NCU, "--kernel-name", _KERNELS, *sections, *target]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=scene.seconds, check=False
    )
    if done.returncode:
        yield {"what": "ncu", "failed": (done.stdout + done.stderr)[-2000:]}
        return
    table = [line for line in done.stdout.splitlines() if line.startswith('"')]
    for found in csv.DictReader(table):
        yield {
            "what": found.get("Kernel Name", "?"),
            "launch": found.get("ID"),
            "metric": found.get("Metric Name"),
            "unit": found.get("Metric Unit"),
            "value": found.get("Metric Value"),
        }


def launch(scene: Scene) -> None:
    """Launch what is profiled, once."""
    backend = select(scene.device)
    for name in PROFILED:
        KERNELS[name][1](backend, scene.sizes(23)[-1])()
