"""What a cold worker pays, and the kernels of all later steps: compiled once, by all cores."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.util import find_spec
from time import perf_counter, process_time

import numpy as np

from benchmarks.gpu.environment import CACHE_VARIABLE
from benchmarks.gpu.launch import first_batch
from benchmarks.gpu.scene import Row, Scene

#: Compiled when dry: one that is quick.
_QUICK = ("joins.cover",)
_MOST_PROCESSES = 16
#: The slowest come first.
_SLOWEST = ("cells", "combine")
#: Kernels of the CPU that no step uses, and that take long.
_UNUSED = ("matching", "merging", "panes")


def run(scene: Scene) -> Iterator[Row]:
    """Yield the time of a fresh process with a cold cache, every kernel's, and with a warm one.

    Kernels are left where the environment says; a dry run leaves none.
    """
    with tempfile.TemporaryDirectory() as cold:
        yield {"what": "fresh process", "cache": "cold", **_first_batch(scene, cold)}
        warm = cold if scene.dry else os.environ.get(CACHE_VARIABLE, "")
        if warm:
            os.environ[CACHE_VARIABLE] = warm
        yield from _kernels(scene)
        yield {"what": "fresh process", "cache": "warm", **_first_batch(scene, warm)}


def _kernels(scene: Scene) -> Iterator[Row]:
    if find_spec("numba_cuda") is None:
        yield {"what": "kernels", "missing": "the package numba-cuda"}
        return
    work = _work(scene)
    processes = min(_MOST_PROCESSES, os.cpu_count() or 1, len(work))
    began, spawn = perf_counter(), multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, spawn) as pool:
        calls = {pool.submit(_BY_DEVICE[each["device"]], each["kernel"]): each for each in work}
        for call in as_completed(calls):
            yield {"what": "kernel", **calls[call], **_told(call.exception, call.result)}
    yield {"what": "all kernels", "processes": processes, "seconds": perf_counter() - began}


def _told(exception: Callable[[], object], result: Callable[[], float]) -> Row:
    error = exception()
    if error is None:
        return {"cpu_s": result()}
    return {"failed": f"{type(error).__name__}: {error}"[:500]}


def _work(scene: Scene) -> list[Row]:
    """Return kernels and for what to compile them: both back ends, for results are compared."""
    if scene.dry:
        return [{"device": "ptx", "kernel": name} for name in _QUICK]
    from gpu_windows.kernels.warm import kernels_of

    work = [{"device": "cuda", "kernel": name} for name in kernels_of("cuda")]
    of_cpu = (name for name in kernels_of("cpu") if not name.startswith(_UNUSED))
    work += [{"device": "cpu", "kernel": name} for name in of_cpu]
    return sorted(work, key=lambda each: not each["kernel"].startswith(_SLOWEST))


def compile_on_device(name: str) -> float:
    """Compile a kernel for the device, ours or one of CuPy's; return processor seconds."""
    from gpu_windows.kernels.backend import select
    from gpu_windows.kernels.warm import kernels_of

    select("cuda").to_device(np.zeros(1))  # makes the context
    kernel, began = kernels_of("cuda")[name], process_time()
    kernel.compile()
    return process_time() - began


def compile_on_host(name: str) -> float:
    """Compile a kernel of the CPU; return processor seconds."""
    from gpu_windows.kernels.warm import kernels_of

    kernel, began = kernels_of("cpu")[name], process_time()
    kernel.compile()
    return process_time() - began


def compile_to_ptx(name: str) -> float:
    """Compile a kernel to PTX, which needs no device; return processor seconds."""
    from gpu_windows.kernels.cuda.compiler import ptx
    from gpu_windows.kernels.cuda.kernel import all_kernels

    kernel, began = all_kernels()[name], process_time()
    ptx(kernel.definition, kernel.signatures[0], (9, 0))
    return process_time() - began


_BY_DEVICE: Mapping[str, Callable[[str], float]] = {
    "cuda": compile_on_device,
    "cpu": compile_on_host,
    "ptx": compile_to_ptx,
}


def _first_batch(scene: Scene, cache: str) -> Row:
    return first_batch(scene.device, os.environ | ({CACHE_VARIABLE: cache} if cache else {}))
