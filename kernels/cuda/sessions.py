"""Group spans of time of the same key that intersect or touch."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import DeviceInts
from gpu_windows.kernels.cuda import primitives
from gpu_windows.kernels.cuda.cells import reach_of
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.grouping import Groups, groups_at, key_begins, none, sort
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.types import BOOLS, INTS


def group(codes: DeviceInts, starts: DeviceInts, ends: DeviceInts, key_count: int) -> Groups:
    """See `contract.groups.Sessions.group`."""
    count = len(codes)
    if count == 0:
        return none()
    order = sort(codes, starts, key_count, reach_of(starts))
    keys = key_begins(codes, order)
    heads = primitives.empty(count, np.bool_)
    _heads(len(keys), keys, starts, ends, order, heads)
    return groups_at(codes, starts, order, primitives.where(heads))


@kernel((INTS, INTS, INTS, INTS, BOOLS))
def _heads(keys: Any, starts: Any, ends: Any, order: Any, heads: Any) -> None:
    """Mark the first row of every session: a thread walks the rows of a key."""
    for k in range(cuda.grid(1), keys.size, cuda.gridsize(1)):
        last = keys[k + 1] if k + 1 < keys.size else order.size
        heads[keys[k]] = True
        end = ends[order[keys[k]]]
        for i in range(keys[k] + 1, last):
            row = order[i]
            heads[i] = starts[row] > end
            end = ends[row] if heads[i] else max(end, ends[row])
