"""Running combinations: every entry of a run with those before it."""

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
from gpu_windows.kernels.cuda import primitives
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.scan import FOLD, MOMENTS, PICK
from gpu_windows.kernels.cuda.types import BOOLS, INTS


def fold(how: int, begins: DeviceInts, values: DeviceLane) -> DeviceLane:
    """See `contract.groups.Running.fold`."""
    return FOLD.up_to((how,), begins, (values,))[0]


def moments(begins: DeviceInts, n: DeviceInts, *parts: DeviceFloats) -> DeviceMoments:
    """See `contract.groups.Running.moments`."""
    ns, highs, lows, m2s = MOMENTS.up_to((), begins, (n, *parts))
    return ns, highs, lows, m2s


def pick(begins: DeviceInts, rank: DeviceInts, valid: DeviceBools) -> DeviceInts:
    """See `contract.groups.Running.pick`."""
    candidates = primitives.empty(len(rank), np.int64)
    _candidates(len(rank), valid, candidates)
    return PICK.up_to((rank,), begins, (candidates,))[0]


@kernel((BOOLS, INTS))
def _candidates(valid: Any, out: Any) -> None:
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = i if valid[i] else -1
