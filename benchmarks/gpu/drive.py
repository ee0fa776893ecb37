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
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from benchmarks.gpu import environment

#: Seconds for all steps together.
TOTAL = 240.0

Row = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """A module of this package, and how much of the time it may take.

    Parameters
    ----------
    name : str
    share : float
        Of the time that is left, beside the shares of the steps that follow.
    about : str
        What it measures.
    """

    name: str
    share: float
    about: str


#: By worth: what tells most comes first. What a step leaves of its time the later ones have.
STEPS = (
    Step("compiling", 20, "a fresh process; compiling every kernel, for all that follows"),
    Step("checks", 18, "the tests that need a device"),
    Step("recorded", 12, "recorded runs of Flink, on the device"),
    Step("ceilings", 8, "copies: on the device, pinned, pageable and staged"),
    Step("sizes", 24, "every kind of kernel at several sizes"),
    Step("queries", 14, "whole queries, CUDA and CPU; from Arrow to Arrow"),
    Step("sharing", 6, "four processes at once; a nearly full device"),
    Step("rolling", 3, "aggregates over rows before each row, beside cuDF's"),
    Step("sanitizer", 4, "the small tests under compute-sanitizer"),
    Step("counters", 3, "the hardware's counters (ncu)"),
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
    time : str
        When it began.
    commit : str
        Of what it measured; "" without git.
    compiled : int
        Kernels that it had to compile; after the first step there should be none.
    """

    step: str
    about: str
    status: str
    seconds: float
    budget_s: float
    rows: list[Row] = field(default_factory=list)
    output: str = ""
    time: str = ""
    commit: str = ""
    compiled: int = 0


def drive(
    steps: Sequence[Step],
    *,
    dry: bool,
    keep: Callable[[Sequence[Outcome]], None],
    total: float = TOTAL,
    before: Sequence[Outcome] = (),
    cache: Path | None = None,
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
    before : sequence of Outcome
        Of an earlier run on this machine: the rates of copies, if they are not measured now.
    cache : Path, optional
        Folder of compiled kernels that the steps share; where others keep them if not given.
    """
    outcomes: list[Outcome] = []
    commit, ends = environment.commit(), monotonic() + total
    for number, step in enumerate(steps):
        share = step.share / sum(later.share for later in steps[number:])
        seconds = max(ends - monotonic(), 0.0) * share
        rates = rates_of([*outcomes, *before])
        outcomes.append(_run(step, seconds, dry=dry, rates=rates, cache=cache, commit=commit))
        keep(outcomes)
    return outcomes


def rates_of(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return bytes a second of the copies that others are compared with, where measured.

    Returns
    -------
    dict of str to float
        "copy" of one on the device, read and written; "host" of one from pinned memory to it.
    """
    rows = [row for outcome in outcomes for row in outcome.rows if "gb_per_s" in row]
    names = {"copy": "device copy", "host": "pinned to device"}
    found = {key: [r["gb_per_s"] for r in rows if r["what"] == what] for key, what in names.items()}
    return {key: 1e9 * values[0] for key, values in found.items() if values}


def _run(
    step: Step, seconds: float, *, dry: bool, rates: dict[str, float], cache: Path | None,
    commit: str,
) -> Outcome:  # fmt: skip
    at, held = datetime.now(UTC).isoformat(timespec="seconds"), environment.compiled(cache)
    with tempfile.TemporaryDirectory() as folder:
        lines, log = Path(folder, "rows"), Path(folder, "log")
        lines.touch()
        command = [sys.executable, "-m", "benchmarks.gpu.step", step.name, str(lines)]
        command += ["--seconds", str(seconds), *(["--dry"] if dry else [])]
        for name, rate in rates.items():
            command += [f"--{name}-rate", str(rate)]
        began = monotonic()
        code = _within(command, seconds, log, environment.of_steps(cache))
        taken = round(monotonic() - began, 2)
        rows = [json.loads(line) for line in lines.read_text().split("\n")[:-1]]  # whole lines
        status = {None: "stopped", 0: "done"}.get(code, "failed")
        output = "" if status == "done" else log.read_text(errors="replace")[-4000:]
        new = environment.compiled(cache) - held
        return Outcome(
            step.name, step.about, status, taken, round(seconds, 2), rows, output, at, commit, new
        )


def _within(
    command: Sequence[str], seconds: float, log: Path, variables: dict[str, str]
) -> int | None:
    """Run a command with all processes that it starts; return its status, None if out of time."""
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=variables, start_new_session=True
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
