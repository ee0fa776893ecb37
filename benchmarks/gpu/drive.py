"""Run the steps, each in a process of its own and within its time; keep results as each ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

#: Seconds for all steps together.
TOTAL = 590.0

Row = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """A module of this package, and how many seconds it may take.

    Parameters
    ----------
    name : str
    seconds : float
    about : str
        What it measures.
    """

    name: str
    seconds: float
    about: str


STEPS = (
    Step("ceilings", 30, "copies: on the device, pinned, pageable and staged"),
    Step("compiling", 90, "compiling every kernel; fresh processes"),
    Step("checks", 150, "the tests that need a device; compute-sanitizer"),
    Step("sharing", 55, "four processes at once; a nearly full device"),
    Step("sizes", 150, "every kind of kernel at several sizes"),
    Step("counters", 55, "the hardware's counters (ncu)"),
    Step("queries", 60, "whole queries, CUDA and CPU"),
)


@dataclass(frozen=True)
class Outcome:
    """What became of a step.

    Parameters
    ----------
    step : str
    about : str
    status : {"done", "failed", "stopped"}
        Stopped: it had no time left. What it had measured by then is there in any case.
    seconds, budget_s : float
    rows : list of dict
        The measurements.
    output : str
        The end of what a step wrote that was not done.
    """

    step: str
    about: str
    status: str
    seconds: float
    budget_s: float
    rows: list[Row] = field(default_factory=list)
    output: str = ""


def drive(
    steps: Sequence[Step],
    *,
    dry: bool,
    keep: Callable[[Sequence[Outcome]], None],
    total: float = TOTAL,
) -> list[Outcome]:
    """Run steps one after the other.

    Parameters
    ----------
    steps : sequence of Step
    dry : bool
        Run kernels on the CPU, at tiny sizes.
    keep : callable
        Called with the outcomes so far, as each step ends.
    total : float
        Seconds for all of them.
    """
    outcomes: list[Outcome] = []
    ends = monotonic() + total
    for step in steps:
        seconds = min(step.seconds, ends - monotonic())
        outcomes.append(_run(step, max(seconds, 0.0), dry=dry, rate=copy_rate(outcomes)))
        keep(outcomes)
    return outcomes


def copy_rate(outcomes: Sequence[Outcome]) -> float | None:
    """Return the bytes a second of a copy on the device, if that was measured."""
    rows = [row for outcome in outcomes for row in outcome.rows]
    return next((1e9 * r["gb_per_s"] for r in rows if r.get("what") == "device copy"), None)


def _run(step: Step, seconds: float, *, dry: bool, rate: float | None) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        lines, log = Path(folder, "rows"), Path(folder, "log")
        lines.touch()
        command = [sys.executable, "-m", "benchmarks.gpu.step", step.name, str(lines)]
        command += ["--seconds", str(seconds), *(["--dry"] if dry else [])]
        command += ["--copy-rate", str(rate)] if rate else []
        began = monotonic()
        code = _within(command, seconds, log)
        rows = [json.loads(line) for line in lines.read_text().split("\n")[:-1]]  # whole lines
        status = {None: "stopped", 0: "done"}.get(code, "failed")
        output = "" if status == "done" else log.read_text(errors="replace")[-4000:]
        taken = round(monotonic() - began, 2)
        return Outcome(step.name, step.about, status, taken, seconds, rows, output)


def _within(command: Sequence[str], seconds: float, log: Path) -> int | None:
    """Run a command with all processes that it starts; return its status, None if out of time."""
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it left running, which is all in a session of its own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def as_dict(outcomes: Sequence[Outcome]) -> list[Row]:
    """Return outcomes for JSON."""
    return [asdict(outcome) for outcome in outcomes]
