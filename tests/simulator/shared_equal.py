"""The threads of a simulated block share an array, however often the interpreter switches."""

from __future__ import annotations

from time import sleep
from typing import Any

import numpy as np
import pytest

from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import CudaKernel
from gpu_windows.kernels.cuda.primitives import THREADS
from gpu_windows.kernels.cuda.types import INTS


def _swap(out: Any) -> None:
    shared = cuda.shared.array(THREADS, out.dtype)
    lane = cuda.threadIdx.x
    for block in range(cuda.blockIdx.x, out.size // THREADS, cuda.gridDim.x):
        shared[lane] = block * THREADS + lane
        cuda.syncthreads()
        out[block * THREADS + lane] = shared[THREADS - 1 - lane]
        cuda.syncthreads()


def test_threads_see_what_others_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = np.empty

    def slowly(*arguments: Any) -> Any:
        sleep(0.02)  # another thread may ask meanwhile
        return empty(*arguments)

    monkeypatch.setattr(np, "empty", slowly)
    swap, out = CudaKernel(_swap, [(INTS,)]), np.zeros(4 * THREADS, np.int64)
    swap(len(out), out)
    assert (out == np.arange(len(out)).reshape(-1, THREADS)[:, ::-1].ravel()).all()
