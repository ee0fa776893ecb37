"""Recorded runs of Flink, replayed on the device: every scenario that its kernels can run."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import tempfile
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from benchmarks.gpu.scene import Row, Scene

_FOLDER = Path("tests", "golden")
_MOST_PROCESSES = 12
#: Scenarios that a process is given at once.
_CHUNK = 10
#: Seconds in which a chunk that begins may end; 25 took 19 on an H200 that 12 processes shared.
_LEAST = 12.0
#: Of all scenarios, as many as end between two rows.
_A_ROW = 1 / 10
_WHAT = "recorded runs of Flink"
#: Scenarios of a dry run.
_FEW = 4
#: Differences whose text is kept.
_SHOWN = 6

#: What the planner says of queries of which a device has no kernel, such as patterns.
_NO_KERNEL = "is not possible: no kernel of a device runs"


def run(scene: Scene) -> Iterator[Row]:
    """Yield how many scenarios agreed so far, at times; no chunk begins without time to end."""
    if (reason := _why_no_command()) is not None:
        yield {"what": _WHAT, "missing": reason}
        return
    files = sorted(str(file) for file in _FOLDER.glob("*/*.json"))
    if scene.dry:
        files = files[:_FEW]
    count = max(-(-len(files) // _CHUNK), 1)
    waiting = deque(files[number::count] for number in range(count))  # every chunk has all kinds
    counts, differences, shown = Counter[str](), list[Any](), 0
    processes = min(_MOST_PROCESSES, os.cpu_count() or 1, count)
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        running: set[Future[tuple[Counter[str], list[Any]]]] = set()
        while waiting or running:
            while waiting and len(running) < processes and scene.left > _LEAST:
                running.add(pool.submit(replay, waiting.popleft(), scene.device))
            if not running:
                break
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for call in ended:
                counts += call.result()[0]
                differences += call.result()[1]
            if counts.total() - shown >= len(files) * _A_ROW:
                shown = counts.total()
                yield summarize(counts, differences, len(files), sum(map(len, waiting)))
    if counts.total() > shown:
        yield summarize(counts, differences, len(files), sum(map(len, waiting)))
    elif not shown:
        yield {"what": _WHAT, "left_out": f"{scene.left:.0f} s are left, it takes {_LEAST:.0f}"}


def _why_no_command() -> str | None:
    """Return why scenarios cannot be replayed here; None if they can."""
    try:
        importlib.import_module("gpu_windows.cli")
    except ImportError as error:
        return str(error)
    return None


def replay(paths: Sequence[str], device: str = "cuda") -> tuple[Counter[str], list[Any]]:
    """Replay scenarios on the local runner.

    Parameters
    ----------
    paths : sequence of str
        Scenarios, or folders of them.
    device : {"cpu", "cuda"}

    Returns
    -------
    Counter of str, list
        How many passed, failed, were left out, and that no kernel of a device runs; what became of
        those that failed.
    """
    from tests.conformance.__main__ import app

    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = ["--device", device, "--json", str(report), *paths]
        with (
            Path(os.devnull).open("w") as nothing,
            redirect_stdout(nothing),
            redirect_stderr(nothing),
        ):
            app(command, standalone_mode=False)
        scenarios = json.loads(report.read_text())["scenarios"]
    return count_outcomes(scenarios)


def count_outcomes(scenarios: Sequence[Any]) -> tuple[Counter[str], list[Any]]:
    """Return how many scenarios of a report had which outcome, and those that differ."""
    counts: Counter[str] = Counter()
    differences = []
    for scenario in scenarios:
        has_kernel = _NO_KERNEL not in str(scenario)
        counts[scenario["status"] if has_kernel else "no kernel"] += 1
        if has_kernel and scenario["status"] == "failed":
            differences.append(scenario)
    return counts, differences


def summarize(
    counts: Counter[str], differences: Sequence[Any], scenarios: int, left_out: int
) -> Row:
    """Return the outcomes so far in one row.

    Parameters
    ----------
    counts : Counter of str
        Of `count_outcomes`.
    differences : sequence
        Scenarios that differ; the first ones are written in the row.
    scenarios, left_out : int
        How many there are, and how many have not begun.
    """
    row: Row = {
        "what": _WHAT, "scenarios": scenarios, "passed": counts["passed"],
        "skipped": counts["skipped"], "no_kernel": counts["no kernel"], "not_begun": left_out,
    }  # fmt: skip
    if differences:
        texts = [json.dumps(scenario)[:600] for scenario in differences[:_SHOWN]]
        row |= {"failed_with": f"{len(differences)} differ", "output": "\n".join(texts)}
    return row
