"""Tables into which the threads of a device fold integers by atomics, one for each of some cells.

A cell is several places of a table, side by side, where the table is small: so the threads of a
warp, whose rows are of a hot key, write to places of their own. They are folded when the rows are
through. Integers have the same sums, least and greatest in any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.cuda import primitives, rules
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.types import INT, INTS
from gpu_windows.rules import IDENTITIES

#: Places of a table that a device's cache holds and most of them for one cell.
_PLACES, _MAX_REPLICAS = 1 << 18, 256


def table(how: int, size: int) -> tuple[int, Any]:
    """Return how many places each of ``size`` cells has, and int64[size * places] of identities."""
    replicas = min(max(_PLACES // size, 1), _MAX_REPLICAS)
    return replicas, primitives.full(size * replicas, int(IDENTITIES[how, "int64"]))


def fold_replicas(how: int, replicas: int, places: Any) -> Any:
    """Return int64[size]: the places of every cell folded."""
    if replicas == 1:
        return places
    out = primitives.empty(len(places) // replicas, np.int64)
    _fold_places(len(out), how, IDENTITIES[how, "int64"], replicas, places, out)
    return out


@kernel((INT, INT, INT, INTS, INTS))
def _fold_places(how: Any, identity: Any, replicas: Any, table: Any, out: Any) -> None:
    for cell in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        total = identity
        for place in range(cell * replicas, (cell + 1) * replicas):
            total = rules.fold(how, total, table[place])
        out[cell] = total
