"""What a cold worker pays: compiling every kernel, then a fresh process up to its first batch."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from time import perf_counter, process_time

import numpy as np

from benchmarks.gpu.scene import Row, Scene

#: Compiled when dry: one that is quick.
_QUICK = ["joins.cover"]

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


def run(scene: Scene) -> Iterator[Row]:
    """Yield the time of every kernel, then of fresh processes with a cold and a warm cache."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["GPU_WINDOWS_CACHE_DIR"] = cache
        yield from _kernels(scene)
        yield {"what": "fresh process", "cache": "warm", **_first_batch(scene)}
        with tempfile.TemporaryDirectory() as other:
            os.environ["GPU_WINDOWS_CACHE_DIR"] = other
            yield {"what": "fresh process", "cache": "cold", **_first_batch(scene)}


def _kernels(scene: Scene) -> Iterator[Row]:
    if find_spec("numba_cuda") is None:
        yield {"what": "kernels", "missing": "the package numba-cuda"}
        return
    from gpu_windows.kernels.cuda.kernel import all_kernels

    names = _QUICK if scene.dry else list(all_kernels())
    names.sort(key=lambda name: not name.startswith(("merging", "panes")))  # the slowest first
    work = compile_to_ptx if scene.dry else compile_on_device
    began, spawn = perf_counter(), multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(16, os.cpu_count() or 1, len(names)), spawn) as pool:
        for name, seconds in zip(names, pool.map(work, names), strict=True):
            yield {"what": "kernel", "kernel": name, "cpu_s": seconds}
    yield {"what": "all kernels", "processes": 16, "seconds": perf_counter() - began}


def compile_on_device(name: str) -> float:
    """Compile a kernel for the device; return processor seconds."""
    from gpu_windows.kernels.backend import select
    from gpu_windows.kernels.cuda.kernel import all_kernels

    select("cuda").to_device(np.zeros(1))  # makes the context
    began = process_time()
    all_kernels()[name].compile()
    return process_time() - began


def compile_to_ptx(name: str) -> float:
    """Compile a kernel to PTX, which needs no device; return processor seconds."""
    from gpu_windows.kernels.cuda.compiler import ptx
    from gpu_windows.kernels.cuda.kernel import all_kernels

    kernel, began = all_kernels()[name], process_time()
    ptx(kernel.definition, kernel.signatures[0], (9, 0))
    return process_time() - began


def _first_batch(scene: Scene) -> Row:
    command = [sys.executable, "-c", _FIRST_BATCH, scene.device]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        return {"failed": run.stderr[-2000:]}
    times: Row = json.loads(run.stdout.splitlines()[-1])
    return times
