"""Group spans of time of the same key that intersect or touch."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import DeviceInts
from gpu_windows.kernels.cuda import primitives
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.grouping import Groups, groups_at, key_begins, none
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.reach import reach_of
from gpu_windows.kernels.cuda.scan import FOLD, Lane
from gpu_windows.kernels.cuda.sorting import sort_pairs
from gpu_windows.kernels.cuda.types import BOOLS, INTS
from gpu_windows.rules import MAX


def group(codes: DeviceInts, starts: DeviceInts, ends: DeviceInts, key_count: int) -> Groups:
    """See `contract.groups.Sessions.group`."""
    count = len(codes)
    if count == 0:
        return none()
    order, codes, starts = sort_pairs(codes, starts, (0, key_count - 1), reach_of(starts))
    sorted_ends = primitives.gather(ends, order)
    latest = FOLD.up_to(MAX, key_begins(codes), Lane(sorted_ends)).values
    heads = primitives.empty(count, np.bool_)
    _heads(count, codes, starts, latest, heads)
    return groups_at(codes, starts, order, primitives.where(heads))


@kernel((INTS, INTS, INTS, BOOLS))
def _heads(codes: Any, starts: Any, latest: Any, heads: Any) -> None:
    """Mark the first row of every session: it starts after all those before it have ended."""
    for i in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
        heads[i] = i == 0 or codes[i] != codes[i - 1] or starts[i] > latest[i - 1]
