"""Tables into which the threads of a device fold integers by atomics, one for each of some cells.

A cell is several places of a table, side by side, where the table is small: so the threads of a
warp, whose rows are of a hot key, write to places of their own. They are folded when the rows are
through, by as many threads as read neighbouring places at once. Integers have the same sums, least
and greatest in any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.cuda import primitives, rules
from gpu_windows.kernels.cuda.blocks import fold_team
from gpu_windows.kernels.cuda.compiler import cuda, device_function
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.primitives import THREADS
from gpu_windows.kernels.cuda.types import INT, INTS
from gpu_windows.rules import IDENTITIES

#: Places of a table that a device's cache holds and most of them for one cell.
_PLACES, _MAX_REPLICAS = 1 << 18, 256
#: Threads that fold the places of a cell: a warp.
TEAM = 32


def places() -> int:
    """Return how many places a table of few cells has."""
    return _PLACES


def _replicas(size: Any, max_places: Any) -> Any:
    """Return how many places each cell has: one, or a power of two and ``max_places`` in all."""
    replicas = 1
    while 2 * replicas * size <= max_places and replicas < _MAX_REPLICAS:
        replicas *= 2
    return replicas


#: The same in kernels.
replicas_of = device_function(_replicas)


def table(how: int, size: int) -> tuple[int, Any]:
    """Return how many places each of ``size`` cells has, and int64[size * places] of identities."""
    replicas = _replicas(size, _PLACES)
    return replicas, primitives.full(size * replicas, int(IDENTITIES[how, "int64"]))


def fold_replicas(how: int, replicas: int, places: Any) -> Any:
    """Return int64[size]: the places of every cell folded."""
    if replicas == 1:
        return places
    out, team = primitives.empty(len(places) // replicas, np.int64), min(replicas, TEAM)
    _fold_places(len(out) * team, how, IDENTITIES[how, "int64"], replicas, team, places, out)
    return out


@kernel((INT, INT, INT, INT, INTS, INTS))
def _fold_places(how: Any, identity: Any, replicas: Any, team: Any, table: Any, out: Any) -> None:
    lane, cells = cuda.threadIdx.x, THREADS // team
    for first in range(cuda.blockIdx.x * cells, out.size, cuda.gridDim.x * cells):
        cell, total = first + lane // team, identity
        if cell < out.size:
            for replica in range(lane % team, replicas, team):
                total = rules.fold(how, total, table[cell * replicas + replica])
        total = fold_team(how, team, total)
        if lane % team == 0 and cell < out.size:
            out[cell] = total


def take_folded(how: int, replicas: int, tables: int, places: Any, cells: Any) -> Any:
    """Return what some cells of tables have, table by table: int64[tables * count].

    Their places have the identity afterwards, so that rows can be folded into them again.

    Parameters
    ----------
    how : int
        ADD, MIN or MAX (`gpu_windows.rules`).
    replicas : int
        Places of a cell.
    tables : int
        How many tables there are in ``places``, one behind the other.
    places : int64[tables * size * replicas]
    cells : int64[count]
    """
    out, team = primitives.empty(tables * len(cells), np.int64), min(replicas, TEAM)
    identity, size = IDENTITIES[how, "int64"], len(places) // tables
    _take_folded(len(out) * team, how, identity, replicas, team, size, places, cells, out)
    return out


@kernel((INT, INT, INT, INT, INT, INTS, INTS, INTS))
def _take_folded(
    how: Any, identity: Any, replicas: Any, team: Any, size: Any, table: Any, cells: Any, out: Any
) -> None:
    lane, items = cuda.threadIdx.x, THREADS // team
    for first in range(cuda.blockIdx.x * items, out.size, cuda.gridDim.x * items):
        item, total = first + lane // team, identity
        if item < out.size:
            begin = item // cells.size * size + cells[item % cells.size] * replicas
            for place in range(begin + lane % team, begin + replicas, team):
                total = rules.fold(how, total, table[place])
                table[place] = identity
        total = fold_team(how, team, total)
        if lane % team == 0 and item < out.size:
            out[item] = total
