"""Scans of segments: every entry combined with those of its segment up to it, or from it on.

A block of threads scans a tile of entries in its shared memory (log2(tile) steps between
barriers), then the totals of the tiles are scanned in the same way. So an entry is read and written
once whatever the length of segments; the scan of 65,536 entries takes two launches, that of 16.7
million four. The order of combination depends on where the entries lie, and on nothing else.

The kernels are written once, for any partial: `Scan` makes those of a kind of partial from the
functions that load, store and merge it.

Source of the scan of a tile: Hillis and Steele, "Data parallel algorithms" (1986); of the totals:
Sengupta et al., "Scan primitives for GPU computing" (2007).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import types

from gpu_windows.kernels.compile import specialize
from gpu_windows.kernels.cuda import primitives, rules
from gpu_windows.kernels.cuda.compiler import cuda, device_function
from gpu_windows.kernels.cuda.kernel import CudaKernel, kernel
from gpu_windows.kernels.cuda.primitives import THREADS as TILE
from gpu_windows.kernels.cuda.search import owner
from gpu_windows.kernels.cuda.types import FLOATS, INT, INTS, INTS32

#: Where an entry looks for those that it is combined with.
BEFORE, AFTER = -1, 1

# ---- what kernels call of a kind of partial: a `Scan` puts its own in their place
merge: Any = None
load: Any = None
store: Any = None
share: Any = None
scan_at: Any = None


#: What a kernel of a kind of partial takes, given the types of the parameter and of the partials.
Signature = Callable[[Any, Any], tuple[Any, ...]]


class Lane(NamedTuple):
    """Partials of one number each: int64[m] or float64[m]."""

    values: Any


class Moments(NamedTuple):
    """Moments: int64[m], and float64[m] each."""

    n: Any
    high: Any
    low: Any
    m2: Any


@dataclass(frozen=True)
class Scanned:
    """A scan, of which the tiles are not put together: `scan_at` does, entry by entry.

    Parameters
    ----------
    towards : int
        BEFORE or AFTER.
    edges : int32[m]
        The entry at which the scan that an entry holds begins: the first of its segment, or with
        AFTER the last.
    parts : Lane or Moments
        m of them: what of an entry's segment is in its tile, up to the entry.
    sums : Lane or Moments
        One a tile, the scan of the tiles: the segment that goes on in the next tile, up to the end
        of this one.
    """

    towards: int
    edges: Any
    parts: Any
    sums: Any

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Arguments of `scan_at` before the entry."""
        return self.towards, self.edges, self.parts, self.sums


class Scan:
    """How partials of a kind are scanned.

    Parameters
    ----------
    name : str
        Of its kernels.
    signatures : tuple of (parameter, partials)
        Numba types: of the parameter of ``merge``, and of the arrays of partials.
    **functions
        Device functions: ``load(partials, at)`` and ``store(partials, at, partial)``;
        ``share(partials)`` makes the shared memory of a tile; ``merge(parameter, left, right)``.
    """

    def __init__(self, name: str, *signatures: tuple[Any, Any], **functions: Any) -> None:
        self.name, self._functions, self._signatures = name, functions, signatures
        scan_at = specialize(_scan_at, f"{name}_at", **functions)
        self._functions["scan_at"] = device_function(scan_at)
        self._scan_tiles = self.kernel(_scan_tiles, f"{name}_tiles", _tiles_signature)
        self._put_together = self.kernel(_put_together, f"{name}_together", _together_signature)

    def kernel(self, template: Callable[..., Any], name: str, signature: Signature) -> CudaKernel:
        """Make a kernel for this kind of partial.

        Parameters
        ----------
        template : callable
            Calls `merge`, `load`, `store` and `scan_at`.
        name : str
        signature : Signature
        """
        signatures = (signature(*each) for each in self._signatures)
        return kernel(*signatures)(specialize(template, name, **self._functions))

    def scan(self, parameter: Any, towards: int, edges: Any, values: Any) -> Scanned:
        """Scan some partials, at least one.

        Parameters
        ----------
        parameter : int or int64[m]
            How partials are combined.
        towards : int
            BEFORE or AFTER.
        edges : int32[m]
            First (AFTER: last) entry of the segment of every entry.
        values : Lane or Moments
        """
        tiles = -(-len(edges) // TILE)
        parts, totals = (like(values, size) for size in (len(edges), tiles))
        ends = primitives.empty(tiles, np.int32)
        self._scan_tiles(tiles * TILE, parameter, towards, edges, values, ends, parts, totals)
        if tiles > 1:
            totals = self.finish(parameter, self.scan(parameter, towards, ends, totals))
        return Scanned(towards, edges, parts, totals)

    def finish(self, parameter: Any, scanned: Scanned) -> Any:
        """Return what every entry holds."""
        count = len(scanned.edges)
        if count <= TILE:
            return scanned.parts
        out = like(scanned.parts, count)
        self._put_together(count, parameter, *scanned.arguments, out)
        return out

    def up_to(self, parameter: Any, begins: Any, values: Any) -> Any:
        """Return every entry combined with those of its run before it.

        Parameters
        ----------
        begins : int64[r]
            Where runs begin, ascending.
        values : Lane or Moments
        """
        edges = primitives.empty(len(values[0]), np.int32)
        if len(edges) == 0:
            return values
        _first_of_run(len(edges), begins, edges)
        return self.finish(parameter, self.scan(parameter, BEFORE, edges, values))


def _tiles_signature(parameter: Any, partials: Any) -> tuple[Any, ...]:
    return parameter, INT, INTS32, partials, INTS32, partials, partials


def _together_signature(parameter: Any, partials: Any) -> tuple[Any, ...]:
    return parameter, INT, INTS32, partials, partials, partials


def like(values: Any, count: int) -> Any:
    """Allocate ``count`` partials, undefined."""
    return type(values)(*(primitives.empty(count, part.dtype) for part in values))


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


def _scan_at(parameter: Any, towards: Any, edges: Any, parts: Any, sums: Any, entry: Any) -> Any:
    """Return the scan of an entry."""
    tile, near = entry // TILE, load(parts, entry)
    if edges[entry] // TILE == tile:
        return near
    far = load(sums, tile + towards)
    left, right = (far, near) if towards == BEFORE else (near, far)
    return merge(parameter, left, right)


def _scan_tiles(
    parameter: Any, towards: Any, edges: Any, values: Any, ends: Any, parts: Any, totals: Any
) -> None:
    shared = share(values)
    lane = cuda.threadIdx.x
    for tile in range(cuda.blockIdx.x, ends.size, cuda.gridDim.x):
        entry = tile * TILE + lane
        within = entry < edges.size
        edge, place = (edges[entry], entry) if within else (entry, 0)
        value = load(values, place)
        distance = 1
        while distance < TILE:
            store(shared, lane, value)
            cuda.syncthreads()
            if _joins(towards, edge, entry, lane, distance):
                far = load(shared, lane + towards * distance)
                left, right = (far, value) if towards == BEFORE else (value, far)
                value = merge(parameter, left, right)
            cuda.syncthreads()
            distance *= 2
        if within:
            store(parts, entry, value)
            if _is_last_of_tile(towards, entry, lane, edges.size):
                store(totals, tile, value)
                ends[tile] = edge // TILE


def _put_together(
    parameter: Any, towards: Any, edges: Any, parts: Any, sums: Any, out: Any
) -> None:
    for i in range(cuda.grid(1), edges.size, cuda.gridsize(1)):
        store(out, i, scan_at(parameter, towards, edges, parts, sums, i))


# ---- kinds of partials


@device_function
def _load(lane: Any, at: Any) -> Any:
    return lane.values[at]


@device_function
def _store(lane: Any, at: Any, value: Any) -> None:
    lane.values[at] = value


@device_function
def _share(lane: Any) -> Any:
    return Lane(cuda.shared.array(TILE, lane.values.dtype))


@device_function
def _better(rank: Any, left: Any, right: Any) -> Any:
    """Return the candidate of lesser rank, the earlier of equals; -1 is none."""
    if left < 0 or right < 0:
        return max(left, right)
    return rules.better(left, rank[left], right, rank[right])


@device_function
def _load_moments(moments: Any, at: Any) -> Any:
    return moments.n[at], moments.high[at], moments.low[at], moments.m2[at]


@device_function
def _store_moments(moments: Any, at: Any, values: Any) -> None:
    n, high, low, m2 = values
    moments.n[at], moments.m2[at] = n, m2
    moments.high[at], moments.low[at] = high, low


@device_function
def _share_moments(moments: Any) -> Any:
    n = cuda.shared.array(TILE, moments.n.dtype)
    high = cuda.shared.array(TILE, moments.high.dtype)
    low = cuda.shared.array(TILE, moments.low.dtype)
    m2 = cuda.shared.array(TILE, moments.m2.dtype)
    return Moments(n, high, low, m2)


@device_function
def _merge_moments(_: Any, left: Any, right: Any) -> Any:
    return rules.wide_moments(
        left[0], left[1], left[2], left[3], right[0], right[1], right[2], right[3]
    )


_INTS, _FLOATS = (types.BaseTuple.from_types((kind,), Lane) for kind in (INTS, FLOATS))
_MOMENTS = types.BaseTuple.from_types((INTS, FLOATS, FLOATS, FLOATS), Moments)
_LANE = {"load": _load, "store": _store, "share": _share}

#: Add, least or greatest. Parameter: how (`gpu_windows.rules`).
FOLD = Scan("fold", (INT, _INTS), (INT, _FLOATS), merge=rules.fold, **_LANE)
#: The best candidate; -1 is none. Parameter: rank, int64 of all candidates.
PICK = Scan("pick", (INTS, _INTS), merge=_better, **_LANE)
#: Parameter: 0, for there is none.
MOMENTS = Scan(
    "moments", (INT, _MOMENTS), merge=_merge_moments, load=_load_moments,
    store=_store_moments, share=_share_moments,
)  # fmt: skip
