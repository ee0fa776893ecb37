"""What the threads of a block find out together: all of them must come to a call."""

from __future__ import annotations

from typing import Any

from gpu_windows.kernels.cuda.compiler import cuda, device_function
from gpu_windows.kernels.cuda.primitives import THREADS
from gpu_windows.kernels.cuda.types import INT


@device_function
def sum_before(value: Any) -> Any:
    """Return what the threads before one have, and what all of them have; once in a kernel."""
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
    return total - value, sums[THREADS - 1]
