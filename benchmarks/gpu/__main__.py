"""``python -m benchmarks.gpu``: measure a machine with a GPU; `--dry` tries all but the launches.

Exit status: 0 if every step was done, 1 if one was not, 2 if there is no usable GPU.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

from benchmarks import machine
from benchmarks.gpu.drive import STEPS, TOTAL, Outcome, as_dict, drive
from benchmarks.gpu.table import to_markdown

#: Without these nothing can run; without the others a step says so.
_NEEDED = ("numpy", "pyarrow", "numba")
_PACKAGES = ("numba_cuda", "cupy", "pytest", "hypothesis")
_PROGRAMS = ("nvidia-smi", "compute-sanitizer", "ncu")
_WHY_NOT = "from gpu_windows.kernels.backend import why_no_cuda; print(why_no_cuda() or '')"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the steps and write what they found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--dry", action="store_true", help="tiny sizes, kernels on the CPU")
    parser.add_argument("--steps", help="names, separated by commas; all if not given")
    parser.add_argument("--seconds", type=float, default=TOTAL, help="for all steps")
    parser.add_argument("--results", type=Path, help="folder of the JSON (benchmarks/results)")
    parser.add_argument("--table", type=Path, help="file of the Markdown (docs/gpu.md)")
    asked = parser.parse_args(arguments)
    names = asked.steps.split(",") if asked.steps else [step.name for step in STEPS]
    if unknown := set(names) - {step.name for step in STEPS}:
        parser.error(f"no such step: {', '.join(sorted(unknown))}")
    missing = what_is_missing()
    if missing:
        print("missing:", *missing, sep="\n  ", file=sys.stderr)
    if any(find_spec(name) is None for name in _NEEDED):
        return 2
    if not asked.dry and (reason := why_no_gpu()):
        print(f"no GPU can be used: {reason}; --dry tries all but the launches", file=sys.stderr)
        return 2
    if not asked.dry:
        asked.results = asked.results or Path("benchmarks/results")
        asked.table = asked.table or Path("docs/gpu.md")
    results = _Results(asked.results, asked.table, missing, dry=asked.dry)
    chosen = [step for step in STEPS if step.name in names]
    outcomes = drive(chosen, dry=asked.dry, keep=results.keep, total=asked.seconds)
    return int(any(outcome.status != "done" for outcome in outcomes))


def what_is_missing() -> list[str]:
    """Return the packages and programs that steps would use and that are not there."""
    packages = [name for name in (*_NEEDED, *_PACKAGES) if find_spec(name) is None]
    programs = [name for name in _PROGRAMS if shutil.which(name) is None]
    return [f"the package {name}" for name in packages] + [f"{name} on PATH" for name in programs]


def why_no_gpu() -> str:
    """Return why no GPU can be used, or nothing; asked in another process, which may crash."""
    command = [sys.executable, "-c", _WHY_NOT]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    last = (run.stderr.strip().splitlines() or ["it ended"])[-1]
    return run.stdout.strip() if run.returncode == 0 else last


class _Results:
    """Writes all outcomes as each step ends, and a line about it."""

    def __init__(
        self, folder: Path | None, table: Path | None, missing: list[str], *, dry: bool
    ) -> None:
        name = f"gpu-{'dry-' if dry else ''}{machine.slug()}.json"
        self._json = None if folder is None else folder / name
        self._table = table
        self._missing = missing
        self._facts = {
            "benchmark": "gpu",
            "dry": dry,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine.describe() | {"load": machine.load()},
            "versions": machine.versions(),
            "missing": missing,
        }

    def keep(self, outcomes: Sequence[Outcome]) -> None:
        last = outcomes[-1]
        print(f"{last.step}: {last.status}, {len(last.rows)} results, {last.seconds:.1f} s")
        if last.output:
            print(last.output[-1500:], file=sys.stderr)
        if self._json is not None:
            whole = {**self._facts, "steps": as_dict(outcomes)}
            self._json.write_text(json.dumps(whole, indent=1) + "\n")
        if self._table is not None:
            facts = {**machine.describe(), **machine.versions()}
            self._table.write_text(to_markdown(outcomes, facts, self._missing))


if __name__ == "__main__":
    sys.exit(main())
