"""Group spans of time of the same key that intersect or touch."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import DeviceInts
from gpu_windows.kernels.cuda import primitives
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.grouping import Groups, groups_at, key_begins, none, sort
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.reach import reach_of
from gpu_windows.kernels.cuda.scan import FOLD
from gpu_windows.kernels.cuda.types import BOOLS, INTS
from gpu_windows.rules import GREATEST


def group(codes: DeviceInts, starts: DeviceInts, ends: DeviceInts, key_count: int) -> Groups:
    """See `contract.groups.Sessions.group`."""
    count = len(codes)
    if count == 0:
        return none()
    order = sort(codes, starts, key_count, reach_of(starts))
    latest = _latest_ends(codes, ends, order)
    heads = primitives.empty(count, np.bool_)
    _heads(count, codes, starts, order, latest, heads)
    return groups_at(codes, starts, order, primitives.where(heads))


def _latest_ends(codes: Any, ends: Any, order: Any) -> Any:
    """Return int64[n]: of every row in order the latest end of its key's up to it."""
    sorted_ends = primitives.gather(ends, order)
    return FOLD.up_to((GREATEST,), key_begins(codes, order), (sorted_ends,))[0]


@kernel((INTS, INTS, INTS, INTS, BOOLS))
def _heads(codes: Any, starts: Any, order: Any, latest: Any, heads: Any) -> None:
    """Mark the first row of every session: it starts after all those before it have ended."""
    for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        row, before = order[i], order[max(i - 1, 0)]
        heads[i] = i == 0 or codes[row] != codes[before] or starts[row] > latest[i - 1]
