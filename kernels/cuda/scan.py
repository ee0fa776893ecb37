"""Scans of segments: every entry combined with those of its segment up to it, or from it on.

A block of threads scans a tile of entries in its shared memory (log2(tile) steps between
barriers), then the totals of the tiles are scanned in the same way. So an entry is read and written
once whatever the length of segments; the scan of 65,536 entries takes two launches, that of 16.7
million four. The order of combination depends on where the entries lie, and on nothing else.

Source of the scan of a tile: Hillis and Steele, "Data parallel algorithms" (1986); of the totals:
Sengupta et al., "Scan primitives for GPU computing" (2007).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_windows.kernels.cuda import primitives, rules
from gpu_windows.kernels.cuda.compiler import cuda, device_function
from gpu_windows.kernels.cuda.kernel import CudaKernel, kernel
from gpu_windows.kernels.cuda.primitives import THREADS as TILE
from gpu_windows.kernels.cuda.search import owner
from gpu_windows.kernels.cuda.types import FLOATS, INT, INTS, INTS32

State = tuple[Any, ...]

#: Where an entry looks for those that it is combined with.
BEFORE, AFTER = -1, 1


@dataclass(frozen=True)
class Scanned:
    """A scan, of which the tiles are not put together: the functions ``*_at`` do, entry by entry.

    Parameters
    ----------
    towards : int
        BEFORE or AFTER.
    edges : int32[m]
        The entry at which the scan that an entry holds begins: the first of its segment, or with
        AFTER the last.
    parts : tuple of arrays of m
        What of an entry's segment is in its tile, up to the entry.
    sums : tuple of arrays, an element a tile
        The scan of the tiles: the segment that goes on in the next tile, up to the end of this one.
    """

    towards: int
    edges: Any
    parts: State
    sums: State

    @property
    def arguments(self) -> State:
        """What the functions ``*_at`` take, but the entry."""
        return (self.towards, self.edges, *self.parts, *self.sums)


@dataclass(frozen=True)
class Scan:
    """How partials of a kind are scanned.

    Parameters
    ----------
    of_tiles : CudaKernel
        (parameters, towards, edges, values, edges of tiles, parts, totals of tiles)
    together : CudaKernel
        (parameters, arguments of a `Scanned`, out)
    """

    of_tiles: CudaKernel
    together: CudaKernel

    def scan(self, parameters: State, towards: int, edges: Any, values: State) -> Scanned:
        """Scan some partials, at least one.

        Parameters
        ----------
        parameters : tuple
            How partials are combined.
        towards : int
            BEFORE or AFTER.
        edges : int32[m]
            First (AFTER: last) entry of the segment of every entry.
        values : tuple of arrays of m
        """
        count, tiles = len(edges), -(-len(edges) // TILE)
        parts, totals = (_like(values, size) for size in (count, tiles))
        ends = primitives.empty(tiles, np.int32)
        threads = tiles * TILE
        self.of_tiles(threads, *parameters, towards, edges, *values, ends, *parts, *totals)
        if tiles > 1:
            totals = self.finish(parameters, self.scan(parameters, towards, ends, totals))
        return Scanned(towards, edges, parts, totals)

    def finish(self, parameters: State, scanned: Scanned) -> State:
        """Return what every entry holds: tuple of arrays of m."""
        if len(scanned.edges) <= TILE:
            return scanned.parts
        out = _like(scanned.parts, len(scanned.edges))
        self.together(len(scanned.edges), *parameters, *scanned.arguments, *out)
        return out

    def up_to(self, parameters: State, begins: Any, values: State) -> State:
        """Return every entry combined with those of its run before it.

        Parameters
        ----------
        begins : int64[r]
            Where runs begin, ascending.
        values : tuple of arrays of m
        """
        edges = primitives.empty(len(values[0]), np.int32)
        if len(edges) == 0:
            return values
        _first_of_run(len(edges), begins, edges)
        return self.finish(parameters, self.scan(parameters, BEFORE, edges, values))


def _like(values: State, count: int) -> State:
    return tuple(primitives.empty(count, part.dtype) for part in values)


@kernel((INTS, INTS32))
def _first_of_run(begins: Any, edges: Any) -> None:
    for i in range(cuda.grid(1), edges.size, cuda.gridsize(1)):
        edges[i] = begins[owner(begins, i)]


@device_function
def _joins(towards: Any, edge: Any, entry: Any, lane: Any, distance: Any) -> Any:
    """Whether an entry is combined with the one so far away, which must be in its tile."""
    other = lane + towards * distance
    return 0 <= other < TILE and (edge - (entry + towards * distance)) * towards >= 0


@device_function
def _is_last_of_tile(towards: Any, entry: Any, lane: Any, count: Any) -> Any:
    """Whether the scan of a tile ends with this entry."""
    if towards == AFTER:
        return lane == 0
    return lane == TILE - 1 or entry == count - 1


# ---- add, least, greatest


@device_function
def _fold(how: Any, towards: Any, near: Any, far: Any) -> Any:
    """Return two partials combined, the earlier one first."""
    return rules.fold(how, far, near) if towards == BEFORE else rules.fold(how, near, far)


@device_function
def fold_at(how: Any, towards: Any, edges: Any, parts: Any, sums: Any, entry: Any) -> Any:
    """Return the scan of an entry."""
    tile = entry // TILE
    if edges[entry] // TILE == tile:
        return parts[entry]
    return _fold(how, towards, parts[entry], sums[tile + towards])


@kernel(
    (INT, INT, INTS32, INTS, INTS32, INTS, INTS), (INT, INT, INTS32, FLOATS, INTS32, FLOATS, FLOATS)
)
def _fold_tiles(
    how: Any, towards: Any, edges: Any, values: Any, ends: Any, parts: Any, totals: Any
) -> None:
    shared = cuda.shared.array(TILE, values.dtype)
    lane = cuda.threadIdx.x
    for tile in range(cuda.blockIdx.x, totals.size, cuda.gridDim.x):
        entry = tile * TILE + lane
        within = entry < edges.size
        edge = edges[entry] if within else entry
        held = values[entry] if within else values[0]
        distance = 1
        while distance < TILE:
            shared[lane] = held
            cuda.syncthreads()
            if _joins(towards, edge, entry, lane, distance):
                held = _fold(how, towards, held, shared[lane + towards * distance])
            cuda.syncthreads()
            distance *= 2
        if within:
            parts[entry] = held
            if _is_last_of_tile(towards, entry, lane, edges.size):
                totals[tile], ends[tile] = held, edge // TILE


@kernel(
    (INT, INT, INTS32, INTS, INTS, INTS),
    (INT, INT, INTS32, FLOATS, FLOATS, FLOATS),
)
def _fold_together(how: Any, towards: Any, edges: Any, parts: Any, sums: Any, out: Any) -> None:
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = fold_at(how, towards, edges, parts, sums, i)


#: Parameters: (how,). State: (int64[m] or float64[m],).
FOLD = Scan(_fold_tiles, _fold_together)


# ---- moments


_STATE = [INTS, FLOATS, FLOATS, FLOATS]


@device_function
def _moments(
    towards: Any, n: Any, high: Any, low: Any, m2: Any,
    far_n: Any, far_high: Any, far_low: Any, far_m2: Any,
) -> Any:  # fmt: skip
    """Return two partials combined, the earlier one first."""
    if towards == BEFORE:
        return rules.wide_moments(far_n, far_high, far_low, far_m2, n, high, low, m2)
    return rules.wide_moments(n, high, low, m2, far_n, far_high, far_low, far_m2)


@device_function
def moments_at(
    towards: Any, edges: Any, n: Any, high: Any, low: Any, m2: Any,
    sums_n: Any, sums_high: Any, sums_low: Any, sums_m2: Any, entry: Any,
) -> Any:  # fmt: skip
    """Return the scan of an entry."""
    tile = entry // TILE
    if edges[entry] // TILE == tile:
        return n[entry], high[entry], low[entry], m2[entry]
    far = tile + towards
    return _moments(
        towards, n[entry], high[entry], low[entry], m2[entry],
        sums_n[far], sums_high[far], sums_low[far], sums_m2[far],
    )  # fmt: skip


@kernel((INT, INTS32, *_STATE, INTS32, *_STATE * 2))
def _moments_tiles(
    towards: Any, edges: Any, n: Any, high: Any, low: Any, m2: Any, ends: Any,
    parts_n: Any, parts_high: Any, parts_low: Any, parts_m2: Any,
    totals_n: Any, totals_high: Any, totals_low: Any, totals_m2: Any,
) -> None:  # fmt: skip
    shared_n = cuda.shared.array(TILE, n.dtype)
    shared_high = cuda.shared.array(TILE, high.dtype)
    shared_low = cuda.shared.array(TILE, low.dtype)
    shared_m2 = cuda.shared.array(TILE, m2.dtype)  # a line each: the simulator tells them apart so
    lane = cuda.threadIdx.x
    for tile in range(cuda.blockIdx.x, ends.size, cuda.gridDim.x):
        entry = tile * TILE + lane
        within = entry < edges.size
        edge, place = (edges[entry], entry) if within else (entry, 0)
        held_n, held_high, held_low, held_m2 = n[place], high[place], low[place], m2[place]
        distance = 1
        while distance < TILE:
            shared_n[lane], shared_m2[lane] = held_n, held_m2
            shared_high[lane], shared_low[lane] = held_high, held_low
            cuda.syncthreads()
            if _joins(towards, edge, entry, lane, distance):
                other = lane + towards * distance
                held_n, held_high, held_low, held_m2 = _moments(
                    towards, held_n, held_high, held_low, held_m2,
                    shared_n[other], shared_high[other], shared_low[other], shared_m2[other],
                )  # fmt: skip
            cuda.syncthreads()
            distance *= 2
        if within:
            parts_n[entry], parts_m2[entry] = held_n, held_m2
            parts_high[entry], parts_low[entry] = held_high, held_low
            if _is_last_of_tile(towards, entry, lane, edges.size):
                totals_n[tile], totals_m2[tile] = held_n, held_m2
                totals_high[tile], totals_low[tile] = held_high, held_low
                ends[tile] = edge // TILE


@kernel((INT, INTS32, *_STATE * 3))
def _moments_together(
    towards: Any, edges: Any, n: Any, high: Any, low: Any, m2: Any,
    sums_n: Any, sums_high: Any, sums_low: Any, sums_m2: Any,
    out_n: Any, out_high: Any, out_low: Any, out_m2: Any,
) -> None:  # fmt: skip
    for i in range(cuda.grid(1), edges.size, cuda.gridsize(1)):
        out_n[i], out_high[i], out_low[i], out_m2[i] = moments_at(
            towards, edges, n, high, low, m2, sums_n, sums_high, sums_low, sums_m2, i
        )


#: No parameters. State: (int64[m], float64[m], float64[m], float64[m]).
MOMENTS = Scan(_moments_tiles, _moments_together)


# ---- pick


@device_function
def better_of(rank: Any, towards: Any, near: Any, far: Any) -> Any:
    """Return the candidate of lesser rank, the earlier of equals; -1 is none."""
    left, right = (far, near) if towards == BEFORE else (near, far)
    if left < 0 or right < 0:
        return max(left, right)
    return rules.better(left, rank[left], right, rank[right])


@device_function
def pick_at(rank: Any, towards: Any, edges: Any, parts: Any, sums: Any, entry: Any) -> Any:
    """Return the scan of an entry."""
    tile = entry // TILE
    if edges[entry] // TILE == tile:
        return parts[entry]
    return better_of(rank, towards, parts[entry], sums[tile + towards])


@kernel((INTS, INT, INTS32, INTS, INTS32, INTS, INTS))
def _pick_tiles(
    rank: Any, towards: Any, edges: Any, values: Any, ends: Any, parts: Any, totals: Any
) -> None:
    shared = cuda.shared.array(TILE, values.dtype)
    lane = cuda.threadIdx.x
    for tile in range(cuda.blockIdx.x, totals.size, cuda.gridDim.x):
        entry = tile * TILE + lane
        within = entry < edges.size
        edge = edges[entry] if within else entry
        held = values[entry] if within else -1
        distance = 1
        while distance < TILE:
            shared[lane] = held
            cuda.syncthreads()
            if _joins(towards, edge, entry, lane, distance):
                held = better_of(rank, towards, held, shared[lane + towards * distance])
            cuda.syncthreads()
            distance *= 2
        if within:
            parts[entry] = held
            if _is_last_of_tile(towards, entry, lane, edges.size):
                totals[tile], ends[tile] = held, edge // TILE


@kernel((INTS, INT, INTS32, INTS, INTS, INTS))
def _pick_together(rank: Any, towards: Any, edges: Any, parts: Any, sums: Any, out: Any) -> None:
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = pick_at(rank, towards, edges, parts, sums, i)


#: Parameters: (rank,), int64 of all candidates. State: (int64[m],), candidates; -1 is none.
PICK = Scan(_pick_tiles, _pick_together)
