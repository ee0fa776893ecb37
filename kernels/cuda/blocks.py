"""Sums and folds over the threads of a block, and a table in their shared memory."""

from __future__ import annotations

from typing import Any

from gpu_windows.kernels.cuda import rules
from gpu_windows.kernels.cuda.compiler import cuda, device_function, load_relaxed, load_shared
from gpu_windows.kernels.cuda.primitives import THREADS
from gpu_windows.kernels.cuda.types import INT
from gpu_windows.rules import LONG_MIN

# ---- sums and folds: all threads must come to a call


@device_function
def sum_before(value: Any) -> Any:
    """Return what the threads before one have, and what all of them have."""
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
    every = sums[THREADS - 1]
    cuda.syncthreads()  # for the next call has the same shared memory
    return total - value, every


@device_function
def fold_team(how: Any, team: Any, value: Any) -> Any:
    """Return what the neighbours of a thread have, folded: to the first of them.

    Parameters
    ----------
    how : int
        ADD, MIN or MAX (`gpu_windows.rules`).
    team : int
        How many neighbours are together: a power of two, at most `THREADS`.
    value : int
    """
    values = cuda.shared.array(THREADS, INT)
    lane, total, distance = cuda.threadIdx.x, value, team // 2
    values[lane] = total
    cuda.syncthreads()
    while distance > 0:
        if lane % team < distance:
            total = rules.fold(how, total, values[lane + distance])
            values[lane] = total
        cuda.syncthreads()
        distance //= 2
    return total


# ---- a table: the greatest value of each of some cells
# Rows come in the order of time, so the rows of a block have few cells. Folded into such a table, a
# block has one atomic for each of them in the device's memory, instead of one for each row. A cell
# that finds no slot goes on without. The greatest integer is the same in any order.

#: Of a table, of 12 bytes each: eight tables and as many blocks have room in a multiprocessor of
#: every architecture since sm_80. A power of two.
SLOTS = 1 << 10
_SLOTS_A_THREAD = SLOTS // THREADS
#: Slots at which a cell is looked for.
_PROBES = 4
_FREE = -1
#: 2**32 over the golden ratio: the cells of a slice, which are far apart, are spread over slots.
_FACTOR, _SHIFT = 2_654_435_769, 32 - 10


@device_function
def clear_table(owners: Any, greatest: Any) -> None:
    """Free all slots of int32[SLOTS] and int64[SLOTS], which all threads of a block call."""
    for turn in range(_SLOTS_A_THREAD):
        slot = turn * THREADS + cuda.threadIdx.x
        owners[slot], greatest[slot] = _FREE, LONG_MIN
    cuda.syncthreads()


@device_function
def rows_of_block(count: Any) -> Any:
    """Return the first row of this block and the one after its last: they are side by side."""
    tiles = (count + THREADS - 1) // THREADS
    rows = (tiles + cuda.gridDim.x - 1) // cuda.gridDim.x * THREADS
    begin = cuda.blockIdx.x * rows
    return begin, min(begin + rows, count)


@device_function
def _slot_of(owners: Any, cell: Any) -> Any:
    """Return the slot of a cell, which is taken if one is free; -1 if none is."""
    slot = ((cell * _FACTOR) >> _SHIFT) & (SLOTS - 1)
    for _ in range(_PROBES):
        owner = load_shared(owners, slot)
        if owner == _FREE:
            owner = cuda.atomic.cas(owners, slot, _FREE, cell)
            if owner == _FREE:
                return slot
        if owner == cell:
            return slot
        slot = (slot + 1) & (SLOTS - 1)
    return -1


@device_function
def keep_greatest(
    owners: Any, greatest: Any, cell: Any, value: Any, replicas: Any, table: Any
) -> None:
    """Fold a value into its cell in the block's table, or else in the device's.

    Parameters
    ----------
    owners, greatest : int32[SLOTS], int64[SLOTS]
    cell : int32
    value : int64
    replicas, table : int, int64[size * replicas]
        As `gpu_windows.kernels.cuda.replicas.table` gives them.
    """
    slot = _slot_of(owners, cell)
    if slot >= 0:
        cuda.atomic.max(greatest, slot, value)
        return
    place = cell * replicas + cuda.grid(1) % replicas
    if value > load_relaxed(table, place):
        cuda.atomic.max(table, place, value)


@device_function
def put_away(owners: Any, greatest: Any, replicas: Any, table: Any) -> None:
    """Fold the block's table into the device's, which all threads of a block call at the end."""
    cuda.syncthreads()
    replica = cuda.blockIdx.x % replicas
    for turn in range(_SLOTS_A_THREAD):
        slot = turn * THREADS + cuda.threadIdx.x
        if owners[slot] != _FREE:
            cuda.atomic.max(table, owners[slot] * replicas + replica, greatest[slot])
