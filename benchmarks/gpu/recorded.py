"""Recorded runs of Flink, replayed on the device: every scenario that its kernels can run."""

from __future__ import annotations

import json
import multiprocessing
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from benchmarks.gpu.scene import Row, Scene

_FOLDER = Path("tests", "golden")
_MOST_PROCESSES = 12
#: Scenarios that a process is given at once.
_CHUNK = 25
#: Scenarios of a dry run.
_FEW = 4
#: Differences whose text is kept.
_SHOWN = 6

#: What the planner says of queries of which a device has no kernel, such as patterns.
_NO_KERNEL = "is not possible: no kernel of a device runs"


def run(scene: Scene) -> Iterator[Row]:
    """Yield how many scenarios agreed so far, as each chunk ends."""
    files = sorted(str(file) for file in _FOLDER.glob("*/*.json"))
    if scene.dry:
        files = files[:_FEW]
    count = max(-(-len(files) // _CHUNK), 1)
    chunks = [files[number::count] for number in range(count)]  # every chunk has all kinds
    found, failed = Counter[str](), list[Any]()
    processes = min(_MOST_PROCESSES, os.cpu_count() or 1, count)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, spawn) as pool:
        calls = [pool.submit(replay, chunk, scene.device) for chunk in chunks]
        for call in as_completed(calls):
            counts, differences = call.result()
            found += counts
            failed += differences
            yield _row(found, failed, len(files))


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
    from gpu_windows.cli import app

    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = ["conformance", "--device", device, "--json", str(report), *paths]
        with Path(os.devnull).open("w") as nothing, redirect_stdout(nothing):
            app(command, standalone_mode=False)
        scenarios = json.loads(report.read_text())["scenarios"]
    found: Counter[str] = Counter()
    failed = []
    for each in scenarios:
        has_kernel = _NO_KERNEL not in str(each)
        found[each["status"] if has_kernel else "no kernel"] += 1
        if has_kernel and each["status"] == "failed":
            failed.append(each)
    return found, failed


def _row(found: Counter[str], failed: Sequence[Any], scenarios: int) -> Row:
    row: Row = {
        "what": "recorded runs of Flink", "scenarios": scenarios, "passed": found["passed"],
        "skipped": found["skipped"], "no_kernel": found["no kernel"],
    }  # fmt: skip
    if failed:
        texts = [f"{json.dumps(each)[:600]}" for each in failed[:_SHOWN]]
        row |= {"failed_with": f"{len(failed)} differ", "output": "\n".join(texts)}
    return row
