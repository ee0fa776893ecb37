"""Running combinations, a thread a run: every entry of a run with those before it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import (
    DeviceBools,
    DeviceFloats,
    DeviceInts,
    DeviceLane,
    DeviceMoments,
)
from gpu_windows.kernels.cuda import primitives, rules
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.types import BOOLS, FLOATS, INT, INTS


def fold(how: int, begins: DeviceInts, values: DeviceLane) -> DeviceLane:
    """See `contract.groups.Running.fold`."""
    out = primitives.empty(len(values), values.dtype)
    _fold(len(begins), how, begins, values, out)
    return out


def moments(
    begins: DeviceInts, n: DeviceInts, mean: DeviceFloats, m2: DeviceFloats
) -> DeviceMoments:
    """See `contract.groups.Running.moments`."""
    ns, means, m2s = (primitives.empty(len(n), part.dtype) for part in (n, mean, m2))
    _moments(len(begins), begins, n, mean, m2, ns, means, m2s)
    return ns, means, m2s


def pick(begins: DeviceInts, rank: DeviceInts, valid: DeviceBools) -> DeviceInts:
    """See `contract.groups.Running.pick`."""
    out = primitives.empty(len(rank), np.int64)
    _pick(len(begins), begins, rank, valid, out)
    return out


@kernel((INT, INTS, INTS, INTS), (INT, INTS, FLOATS, FLOATS))
def _fold(how: Any, begins: Any, values: Any, out: Any) -> None:
    for run in range(cuda.grid(1), begins.size, cuda.gridsize(1)):
        end = begins[run + 1] if run + 1 < begins.size else values.size
        total = values[begins[run]]
        out[begins[run]] = total
        for i in range(begins[run] + 1, end):
            total = rules.fold(how, total, values[i])
            out[i] = total


@kernel((INTS, INTS, FLOATS, FLOATS, INTS, FLOATS, FLOATS))
def _moments(begins: Any, n: Any, mean: Any, m2: Any, ns: Any, means: Any, m2s: Any) -> None:
    for run in range(cuda.grid(1), begins.size, cuda.gridsize(1)):
        end = begins[run + 1] if run + 1 < begins.size else n.size
        total_n, total_mean, total_m2 = 0, 0.0, 0.0
        for i in range(begins[run], end):
            total_n, total_mean, total_m2 = rules.moments(
                total_n, total_mean, total_m2, n[i], mean[i], m2[i]
            )
            ns[i], means[i], m2s[i] = total_n, total_mean, total_m2


@kernel((INTS, INTS, BOOLS, INTS))
def _pick(begins: Any, rank: Any, valid: Any, out: Any) -> None:
    for run in range(cuda.grid(1), begins.size, cuda.gridsize(1)):
        end = begins[run + 1] if run + 1 < begins.size else rank.size
        best = -1
        for i in range(begins[run], end):
            if valid[i] and (best < 0 or rank[i] < rank[best]):
                best = i
            out[i] = best
