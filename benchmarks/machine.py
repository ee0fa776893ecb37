"""What a measurement was made on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path

_PACKAGES = (
    "gpu-windows",
    "pyspark",
    "pyarrow",
    "numpy",
    "numba",
    "numba-cuda",
    "cuda-bindings",
    "cuda-core",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "pylibcudf-cu12",
    "pylibcudf-cu13",
    "polars",
    "duckdb",
)


def describe() -> dict[str, str | float]:
    """Return the machine's processor, cores, memory, system and GPU; nothing that names it."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count() or 1,
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.release()}",
        "gpu": _gpu(),
    }


def versions() -> dict[str, str]:
    """Return the version of Python and of every package that takes part."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def load() -> float:
    """Return the load average of the last minute: how many cores others keep busy."""
    return round(os.getloadavg()[0], 2)


def slug() -> str:
    """Return a name for files: processor, cores and GPU."""
    words = f"{_cpu()} {os.cpu_count()} cores {_gpu()}".lower()
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"\(r\)|\(tm\)|\bcpu\b|@.*?ghz", " ", words)).strip(
        "-"
    )


def _cpu() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_gib() -> float:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def _gpu() -> str:
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return ", ".join(shown.stdout.split("\n")).strip(", ")
