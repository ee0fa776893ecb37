"""``python -m benchmarks.gpu``: measure a machine with a GPU; `--dry` tries all but the launches.

Exit status: 0 if every step was done, 1 if one was not, 2 if there is no usable GPU, or if a first
launch fails.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.gpu import environment
from benchmarks.gpu.drive import STEPS, TOTAL, Step, drive
from benchmarks.gpu.launch import launched
from benchmarks.gpu.results import OtherMachineError, Results, read
from benchmarks.gpu.targets import as_lines, judge

#: Without these nothing can run; without the others a step says so.
_NEEDED = ("numpy", "pyarrow", "numba")
_PACKAGES = ("numba_cuda", "cupy", "pytest", "hypothesis")
_PROGRAMS = ("nvidia-smi", "compute-sanitizer", "ncu")
_COMPILING = "compiling"
_WHY_NOT = "from gpu_windows.kernels.backend import why_no_cuda; print(why_no_cuda() or '')"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the steps and write what they found."""
    asked = _asked(arguments)
    print(environment.versions_in_short(), flush=True)
    missing = what_is_missing()
    if missing:
        print("missing:", *missing, sep="\n  ", file=sys.stderr)
    if any(find_spec(name) is None for name in _NEEDED):
        return 2
    if not asked.dry and (reason := why_no_gpu()):
        print(f"no GPU can be used: {reason}; --dry tries all but the launches", file=sys.stderr)
        return 2
    facts = _facts(missing, dry=asked.dry)
    file = _file(asked)
    try:
        before = read(asked.resume or file, facts["machine"]["gpu"])
    except OtherMachineError as error:
        print(error, file=sys.stderr)
        return 2
    table = asked.table or (None if asked.dry else Path("docs/gpu.md"))
    results = Results(file, table, facts, before)
    steps, cache = _prepared(asked)
    first = launched("cpu" if asked.dry else "cuda", cache)
    results.keep([first])
    if first.status != "done":
        _forget(cache, steps)
        print("nothing can be launched: no step was tried", file=sys.stderr)
        return 2
    outcomes = drive(
        steps,
        dry=asked.dry,
        keep=lambda found: results.keep([first, *found]),
        total=asked.seconds - first.seconds,
        before=before,
        cache=cache,
    )
    print("", *as_lines(judge(results.all)), sep="\n")
    return int(any(outcome.status != "done" for outcome in outcomes))


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--dry", action="store_true", help="tiny sizes, kernels on the CPU")
    parser.add_argument("--steps", help="names, separated by commas; all if not given")
    parser.add_argument("--seconds", type=float, default=TOTAL, help="for all steps")
    parser.add_argument("--results", type=Path, help="folder of the JSON (benchmarks/results)")
    parser.add_argument("--table", type=Path, help="file of the Markdown (docs/gpu.md)")
    parser.add_argument(
        "--resume", type=Path, metavar="FILE",
        help="JSON of this machine to go on from; if not given, the one that is written",
    )  # fmt: skip
    asked = parser.parse_args(arguments)
    asked.names = asked.steps.split(",") if asked.steps else [step.name for step in STEPS]
    if unknown := set(asked.names) - {step.name for step in STEPS}:
        parser.error(f"no such step: {', '.join(sorted(unknown))}")
    if asked.resume and not asked.resume.exists():
        parser.error(f"no such file: {asked.resume}")
    return asked


def _file(asked: argparse.Namespace) -> Path | None:
    """Return the JSON to write: one for a machine; none of a dry run, if it is not asked for."""
    folder = asked.results or (None if asked.dry else Path("benchmarks/results"))
    name = f"gpu-{'dry-' if asked.dry else ''}{machine.slug()}.json"
    return None if folder is None else folder / name


def _prepared(asked: argparse.Namespace) -> tuple[list[Step], Path | None]:
    """Return the steps, with the one that compiles kernels where there are none; their folder."""
    cache = None if asked.dry else environment.cache_folder()
    names = set(asked.names)
    if cache is not None:
        names |= set() if environment.is_warm(cache) else {_COMPILING}
        environment.prepare(cache, empty=_COMPILING in names)
    return [step for step in STEPS if step.name in names], cache


def _forget(cache: Path | None, steps: Sequence[Step]) -> None:
    """Empty the folder of kernels again where a step was to compile all of them."""
    if cache is not None and any(step.name == _COMPILING for step in steps):
        environment.prepare(cache, empty=True)


def _facts(missing: list[str], *, dry: bool) -> dict[str, Any]:
    """Return what the JSON says of a run."""
    return {
        "benchmark": "gpu",
        "dry": dry,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine.describe() | {"load": machine.load()},
        "versions": machine.versions() | {"driver": environment.driver()},
        "missing": missing,
    }


def what_is_missing() -> list[str]:
    """Return the packages and programs that steps would use and that are not there."""
    packages = [name for name in (*_NEEDED, *_PACKAGES) if find_spec(name) is None]
    programs = [name for name in _PROGRAMS if shutil.which(name) is None]
    return [f"the package {name}" for name in packages] + [f"{name} on PATH" for name in programs]


def why_no_gpu() -> str:
    """Return why no GPU can be used, or nothing; asked in another process, which may crash."""
    command, variables = [sys.executable, "-c", _WHY_NOT], environment.of_steps(None)
    run = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    last = (run.stderr.strip().splitlines() or ["it ended"])[-1]
    return run.stdout.strip() if run.returncode == 0 else last


if __name__ == "__main__":
    sys.exit(main())
