"""A fresh process up to its first batch: whether kernels can be launched at all, and how soon."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from benchmarks.gpu import environment
from benchmarks.gpu.drive import Outcome, Row

#: What it is called among the steps, all of which it precedes.
NAME = "launch"
_ABOUT = "a batch in a fresh process, before all steps"
#: Seconds for it; it may have to compile.
_MOST = 90.0
#: Characters that are kept of what it wrote.
_KEPT = 3_000

_FIRST_BATCH = """
import json, sys
from time import perf_counter
began = perf_counter()
import numpy as np
from gpu_windows import rules
from gpu_windows.kernels.backend import select
imported = perf_counter()
backend = select(sys.argv[1])
codes = backend.to_device(np.zeros(1000, np.int64))
context = perf_counter()
groups = backend.grouping.group(codes, codes, 1)
assert int(backend.to_host(backend.reduce.count(groups, backend.reduce.ALL))[0]) == 1000
print(json.dumps({"import_s": imported - began, "context_s": context - imported,
                  "batch_s": perf_counter() - context}))
"""


def first_batch(device: str, variables: Mapping[str, str], seconds: float | None = None) -> Row:
    """Return the seconds of a fresh process up to each stage of its first batch.

    Or "failed", the last line that it wrote, and "output", the end of that.

    Parameters
    ----------
    device : {"cpu", "cuda"}
    variables : mapping
        Its environment.
    seconds : float, optional
        After which it is ended.
    """
    command = [sys.executable, "-c", _FIRST_BATCH, device]
    try:
        run = subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"longer than {seconds:.0f} s", "output": ""}
    if run.returncode:
        return failure(run.returncode, run.stderr)
    times: Row = json.loads(run.stdout.splitlines()[-1])
    return times


def failure(status: int, written: str) -> Row:
    """Return of a process that failed the last line of what it wrote, and the end of that."""
    lines = written.strip().splitlines() or [f"it ended with {status}"]
    return {"failed": lines[-1][:500], "output": written[-_KEPT:]}


def launched(device: str, cache: Path | None) -> Outcome:
    """Launch kernels in a fresh process; return what became of that.

    Parameters
    ----------
    device : {"cpu", "cuda"}
    cache : Path, optional
        Folder of compiled kernels, which has more of them after it.
    """
    at, held, began = datetime.now(UTC), environment.compiled(cache), monotonic()
    variables = environment.of_steps(cache) | {"CUDA_LAUNCH_BLOCKING": "1"}
    row = {"what": "first batch", **first_batch(device, variables, _MOST)}
    status = "failed" if "failed" in row else "done"
    taken, new = round(monotonic() - began, 2), environment.compiled(cache) - held
    time, commit = at.isoformat(timespec="seconds"), environment.commit()
    return Outcome(NAME, _ABOUT, status, taken, _MOST, [row], "", time, commit, new)
