"""The hardware's counters of three kernels, as Nsight Compute reads them."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.gpu.launch import failure
from benchmarks.gpu.scene import Row, Scene
from benchmarks.gpu.sizes import KERNELS
from gpu_windows.kernels.backend import select

#: What is profiled, of `KERNELS`.
PROFILED = ("assign", "combine, span 1,000", "reduce, int64")
_SECTIONS = ("SpeedOfLight", "LaunchStats", "Occupancy", "WarpStateStats")
#: What is told of a launch; the rest explains these.
_METRICS = (
    *("Duration", "Memory Throughput", "DRAM Throughput", "L2 Cache Throughput"),
    *("L1/TEX Cache Throughput", "Compute (SM) Throughput", "Achieved Occupancy"),
    *("Theoretical Occupancy", "Registers Per Thread", "Grid Size", "Block Size"),
    *("Warp Cycles Per Issued Instruction", "SM Frequency", "DRAM Frequency"),
)
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
    done = subprocess.run(command, capture_output=True, text=True, timeout=scene.left, check=False)
    if done.returncode:
        yield {"what": "ncu", **failure(done.returncode, done.stdout + done.stderr)}
        return
    table = [line for line in done.stdout.splitlines() if line.startswith('"')]
    for found in csv.DictReader(table):
        if found.get("Metric Name") not in _METRICS:
            continue
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
