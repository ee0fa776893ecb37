"""Number the rows of every key."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import DeviceInts
from gpu_windows.kernels.cuda import primitives
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.grouping import key_begins
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.search import owner
from gpu_windows.kernels.cuda.types import INTS


def number(codes: DeviceInts, counts: DeviceInts) -> tuple[DeviceInts, DeviceInts]:
    """See `contract.rows.Numbering.number`."""
    numbers = primitives.empty(len(codes), np.int64)
    after = primitives.gather(counts, primitives.to_device(np.arange(len(counts))))
    if len(codes) == 0:
        return numbers, after
    order = primitives.argsort(codes)
    codes = primitives.gather(codes, order)
    begins = key_begins(codes)
    _number(len(codes), codes, counts, order, begins, numbers)
    _count(len(begins), codes, begins, after)
    return numbers, after


@kernel((INTS, INTS, INTS, INTS, INTS))
def _number(codes: Any, counts: Any, order: Any, begins: Any, numbers: Any) -> None:
    for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        numbers[order[i]] = counts[codes[i]] + i - begins[owner(begins, i)]


@kernel((INTS, INTS, INTS))
def _count(codes: Any, begins: Any, counts: Any) -> None:
    for g in range(cuda.grid(1), begins.size, cuda.gridsize(1)):
        end = begins[g + 1] if g + 1 < begins.size else codes.size
        counts[codes[begins[g]]] += end - begins[g]
