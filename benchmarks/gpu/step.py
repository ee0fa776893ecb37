"""A step in a process of its own: ``python -m benchmarks.gpu.step NAME FILE``.

Every measurement is a line of JSON in the file at once, so that a step that crashes, or is
stopped, loses no other one.
"""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path

from benchmarks.gpu.scene import Row, Scene


def main() -> None:
    """Run a step, or what is profiled."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.step")
    parser.add_argument("name", nargs="?")
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--profiled", action="store_true")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--copy-rate", type=float)
    parser.add_argument("--host-rate", type=float)
    asked = parser.parse_args()
    scene = Scene(asked.dry, asked.seconds, asked.copy_rate, asked.host_rate)
    if asked.profiled:
        importlib.import_module("benchmarks.gpu.counters").launch(scene)
        return
    step = importlib.import_module(f"benchmarks.gpu.{asked.name}")
    with asked.file.open("a") as lines:
        bad = 0
        for row in step.run(scene):
            lines.write(json.dumps(row) + "\n")
            lines.flush()
            bad += is_bad(row)
    if bad:
        raise SystemExit(f"{bad} of its results are failures")


def is_bad(row: Row) -> bool:
    """Whether a measurement says that something failed, or gave a wrong result."""
    wrong = row.get("equal") is False or row.get("exact") is False
    return wrong or "failed" in row or "failed_with" in row


if __name__ == "__main__":
    main()
