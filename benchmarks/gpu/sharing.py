"""Several processes on one device, as Spark's workers are, and a device that is nearly full."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpu.scene import Row, Scene
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.device import Kernels, begin_task

#: Processes that are forked before CUDA is used.
_PROCESSES = 4
#: What is left of a device that is nearly full.
_LEFT = 1 << 30


@dataclass(frozen=True)
class Rows:
    """Rows of some keys."""

    codes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.codes)

    def slice(self, begin: int, length: int) -> Self:
        """Return consecutive rows."""
        return type(self)(self.codes[begin : begin + length])


def run(scene: Scene) -> Iterator[Row]:
    """Yield what every process did, then what became of a batch on a nearly full device."""
    fork = multiprocessing.get_context("fork")
    rows = scene.sizes(20, 22)[-1]
    yield from _together(fork, scene, [(rows, 1 / _PROCESSES, 0)] * _PROCESSES)
    left = 0 if scene.dry else _LEFT
    yield from _together(fork, scene, [(scene.sizes(20, 25)[-1], 1.0, left)])


def _together(fork: Any, scene: Scene, jobs: list[tuple[int, float, int]]) -> Iterator[Row]:
    """Run jobs (rows, share, bytes left by others) at once, each in a process of its own."""
    answers, barrier = fork.Queue(), fork.Barrier(len(jobs))
    processes = [
        fork.Process(target=_work, args=(scene, answers, barrier, number, *job))
        for number, job in enumerate(jobs)
    ]
    for process in processes:
        process.start()
    for _ in processes:
        yield answers.get(timeout=scene.seconds)
    for process in processes:
        process.join()


def _work(
    scene: Scene, answers: Any, barrier: Any, number: int, rows: int, share: float, left: int
) -> None:
    what = "a nearly full device" if left else f"process {number}"
    try:
        answers.put({"what": what, **_batches(scene, barrier, number, rows, share, left)})
    except Exception as error:  # noqa: BLE001 - the parent tells what became of every process
        answers.put({"what": what, "failed": f"{type(error).__name__}: {error}"})


def _batches(scene: Scene, barrier: Any, number: int, rows: int, share: float, left: int) -> Row:
    """Count the rows of keys, in batches; return where they were counted and how fast."""
    begin_task(("0",), share, number)
    codes = np.random.default_rng(number).integers(0, 1_000, rows)
    kernels = Kernels("cpu" if scene.dry else "cuda")
    held = _hold_all_but(left) if left else None
    barrier.wait(scene.seconds)
    began = perf_counter()
    counts = np.zeros(1_000, np.int64)
    for found in kernels.each([Rows(codes)] * 3, _count):
        np.add.at(counts, *found)
    seconds = perf_counter() - began
    del held
    counted = kernels.take_counters()
    failed = {"failed": "the CPU had to help"} if counted.cpu_batches and not scene.dry else {}
    return {
        "rows": rows,
        "seconds": seconds,
        "exact": bool((counts == 3 * np.bincount(codes, minlength=1_000)).all()),
        "cuda_batches": counted.cuda_batches,
        "cpu_batches": counted.cpu_batches,
        "device_fallbacks": counted.device_fallbacks,
        **failed,
    }


def _count(backend: Backend, piece: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    codes = backend.to_device(piece.codes)
    groups = backend.grouping.group(codes, codes, 1_000)
    return backend.to_host(groups.codes), backend.to_host(groups.rows)


def _hold_all_but(left: int) -> Any:
    """Take the device's memory, but for some; plain memory, outside of our pool."""
    import cupy

    free, _ = cupy.cuda.runtime.memGetInfo()
    return cupy.cuda.Memory(max(free - left, 1))
