"""Sums and folds over the threads of a block: all of them must come to a call."""

from __future__ import annotations

from typing import Any

from gpu_windows.kernels.cuda import rules
from gpu_windows.kernels.cuda.compiler import cuda, device_function
from gpu_windows.kernels.cuda.primitives import THREADS
from gpu_windows.kernels.cuda.types import INT


@device_function
def sum_before(value: Any) -> Any:
    """Return what the threads before one have, and what all of them have."""
    sums = cuda.shared.array(THREADS, INT)
    lane, distance, total = cuda.threadIdx.x, 1, value
    while distance < THREADS:
        sums[lane] = total
        cuda.syncthreads()
        if lane >= distance:
            total += sums[lane - distance]
        cuda.syncthreads()
        distance *= 2
    sums[lane] = total
    cuda.syncthreads()
    every = sums[THREADS - 1]
    cuda.syncthreads()  # for the next call has the same shared memory
    return total - value, every


@device_function
def fold_team(how: Any, team: Any, value: Any) -> Any:
    """Return what the neighbours of a thread have, folded: to the first of them.

    Parameters
    ----------
    how : int
        ADD, MIN or MAX (`gpu_windows.rules`).
    team : int
        How many neighbours are together: a power of two, at most `THREADS`.
    value : int
    """
    values = cuda.shared.array(THREADS, INT)
    lane, total, distance = cuda.threadIdx.x, value, team // 2
    values[lane] = total
    cuda.syncthreads()
    while distance > 0:
        if lane % team < distance:
            total = rules.fold(how, total, values[lane + distance])
            values[lane] = total
        cuda.syncthreads()
        distance //= 2
    return total
