"""Every kind of kernel at several sizes: device and host time, and the share of the copy's rate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpu.scene import Row, Scene, timed
from gpu_windows import rules
from gpu_windows.errors import DeviceMemoryError
from gpu_windows.kernels.backend import Backend, select
from gpu_windows.kernels.contract.joins import Side
from gpu_windows.kernels.contract.rows import Assigned, Limits
from gpu_windows.rules import ADD

_KEYS = 1_000
_PRIMES = 2_654_435_761, 2_147_483_647
_MINUTE, _DAY = 60_000_000, 86_400_000_000
#: Numbers of rows, as powers of two, and the ratio of two that follow one another.
_POWERS, _GROWTH = (17, 20, 23, 26), 8
#: A kernel is not tried at a larger size once its runs take so many seconds.
_SLOW = 10.0

Work = Callable[[], object]
HostSide = tuple[NDArray[np.int64], NDArray[np.int64]]
#: Makes the work of a kernel for so many rows.
Make = Callable[[Backend, int], Work]


def run(scene: Scene) -> Iterator[Row]:
    """Yield a measurement of every kernel and size; small sizes of all come first."""
    backend, took = select(scene.device), dict.fromkeys(KERNELS, 0.0)
    for rows in scene.sizes(*_POWERS):
        for name, (bytes_a_row, make) in KERNELS.items():
            if took[name] > _SLOW or ("one key" in name and rows > 1 << 20):
                continue
            row: Row = {"what": name, "rows": rows}
            if took[name] * _GROWTH > scene.left:
                yield {**row, "left_out": "no time"}
                continue
            began = perf_counter()
            row |= _measured(scene, backend, rows, make)
            took[name] = perf_counter() - began
            if "device_s" in row:
                row["ideal_bytes"] = bytes_a_row * rows
                if scene.copy_rate:
                    row["share_of_copy"] = row["ideal_bytes"] / row["device_s"] / scene.copy_rate
            yield row


def _measured(scene: Scene, backend: Backend, rows: int, make: Make) -> Row:
    try:
        work = make(backend, rows)
        device, host = timed(scene, work)
    except DeviceMemoryError as error:
        return {"no_room": str(error)}
    return {"device_s": device, "host_s": host, "rows_per_s": rows / device}


# ---- what they are given


@lru_cache(maxsize=8)  # the same for several kernels of a size
def _random(seed: int, low: int, high: int, rows: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(low, high, rows)


def _times(backend: Backend, rows: int) -> Any:
    return backend.to_device(_random(0, 0, _DAY, rows))


def _values(backend: Backend, rows: int, dtype: type[np.generic] = np.int64) -> Any:
    return backend.to_device(_random(2, -(2**40), 2**40, rows).astype(dtype, copy=False))


def _columns(backend: Backend, rows: int, keys: int, ticks: int = 1_440) -> tuple[Any, Any]:
    """Return key codes and slices of rows in order of time."""
    slices = np.arange(rows) * ticks // rows
    return backend.to_device(_random(1, 0, keys, rows)), backend.to_device(slices)


def _every(backend: Backend) -> Any:
    return backend.to_device(np.empty(0, np.bool_))


# ---- the kernels, and how many bytes a row they must move


def _assign_to(backend: Backend, ts: Any, grid: rules.Grid) -> Callable[[], Assigned]:
    """Return what assigns rows."""
    limits = Limits(rules.earliest_unit(grid), rules.latest_unit(grid), 0, 0)
    every, assign = _every(backend), backend.assign.assign_slices
    return lambda: assign(ts, every, grid, limits)


def _assign(backend: Backend, rows: int) -> Work:
    return _assign_to(backend, _times(backend, rows), rules.sliding_grid(60 * _MINUTE, _MINUTE, 0))


def _slices(dtype: type[np.generic]) -> Make:
    """Sum by key and slice of one minute, of rows in order of time: all that is done a row."""

    def make(backend: Backend, rows: int) -> Work:
        ts = backend.to_device(np.arange(rows) * (_DAY // rows))
        assign = _assign_to(backend, ts, rules.sliding_grid(_MINUTE, _MINUTE, 0))
        codes, values = backend.to_device(_random(1, 0, _KEYS, rows)), _values(backend, rows, dtype)
        every = _every(backend)

        def work() -> None:
            groups = backend.grouping.group_accepted(codes, assign(), _KEYS)
            assert groups is not None  # all rows are accepted
            backend.reduce.reduce(ADD, groups, values, every)

        return work

    return make


def _group(keys: int) -> Make:
    def make(backend: Backend, rows: int) -> Work:
        columns = _columns(backend, rows, keys)
        return lambda: backend.grouping.group(*columns, keys)

    return make


def _distinct(keys: int, apart: int) -> Make:
    def make(backend: Backend, rows: int) -> Work:
        values = np.random.default_rng(5).integers(0, keys, rows) * apart
        there = backend.to_device(values), backend.to_device(np.empty(0, np.bool_))
        return lambda: backend.keys.codes(*there, lambda found: np.arange(len(found) + 1))

    return make


def _reduce(keys: int, dtype: type[np.generic] = np.int64) -> Make:
    def make(backend: Backend, rows: int) -> Work:
        groups = backend.grouping.group(*_columns(backend, rows, keys, 60), keys)
        values, every = _values(backend, rows, dtype), _every(backend)
        return lambda: backend.reduce.reduce(ADD, groups, values, every)

    return make


def _combine(span: int) -> Make:
    def make(backend: Backend, rows: int) -> Work:
        keys = 4
        length = rows // keys
        codes = backend.to_device(np.repeat(np.arange(keys), length))
        slices = backend.to_device(np.tile(np.arange(length), keys))
        grid, values = rules.sliding_grid(span, 1, 0), _values(backend, keys * length)
        found = backend.combine.windows(codes, slices, grid, 0, length)
        return lambda: backend.combine.combine(ADD, found, values)

    return make


def _windows(backend: Backend, rows: int) -> Work:
    codes, slices = backend.to_device(np.zeros(rows, np.int64)), backend.to_device(np.arange(rows))
    grid = rules.sliding_grid(60, 1, 0)
    return lambda: backend.combine.windows(codes, slices, grid, 0, rows)


def _sessions(keys: int) -> Make:
    def make(backend: Backend, rows: int) -> Work:
        codes, starts = _columns(backend, rows, keys, 4 * rows)
        ends = backend.to_device(backend.to_host(starts) + 50)
        return lambda: backend.grouping.group_sessions(codes, starts, ends, keys)

    return make


def _number(backend: Backend, rows: int) -> Work:
    codes, _ = _columns(backend, rows, _KEYS)
    counts = backend.to_device(np.zeros(_KEYS, np.int64))
    return lambda: backend.keys.number(codes, counts)


def _side(rows: int, later: int, factor: int = 1) -> HostSide:
    """Return codes and times of a side; within 500 ticks a left row meets one right row.

    They are sorted, or mixed by a prime factor.
    """
    length = rows // _KEYS
    places = np.arange(_KEYS * length) * factor % (_KEYS * length)
    return places // length, places % length * 1_000 + later


def _bounds(backend: Backend, rows: int) -> Work:
    left, right = (Side(*map(backend.to_device, _side(rows, later))) for later in (0, 400))
    return lambda: backend.joins.range_bounds(left, right, -500, 500)


def _pairs(backend: Backend, rows: int) -> Work:
    first = backend.to_device(np.arange(rows // 4))
    last = backend.to_device(np.arange(rows // 4) + 4)
    offsets, count = backend.joins.pair_offsets(first, last)
    numbers = backend.to_device(np.arange(rows + 4, dtype=np.int32))
    return lambda: backend.joins.expand_pairs(numbers, numbers, first, offsets, 0, count)


def _join(backend: Backend, rows: int) -> Work:
    """Sort two sides that come in any order, find bounds, and expand them: a pair a left row."""
    hosts = _side(rows, 0, _PRIMES[0]), _side(rows, 400, _PRIMES[1])
    mixed = [Side(*map(backend.to_device, side)) for side in hosts]

    def work() -> None:
        left, right = (backend.joins.sort(*side) for side in mixed)
        first, last = backend.joins.range_bounds(left.side, right.side, -500, 500)
        offsets, pairs = backend.joins.pair_offsets(first, last)
        backend.joins.expand_pairs(left.numbers, right.numbers, first, offsets, 0, pairs)

    return work


#: Of whole slices and joins it is the bytes of their parts: 17 to assign, 22 to group and 16 to
#: reduce (docs/traffic.md); 24 to sort a row of either side, 32 for bounds and 16 a pair.
KERNELS: Mapping[str, tuple[int, Make]] = {
    "assign": (17, _assign),
    "slices, int64": (55, _slices(np.int64)),
    "slices, float64": (55, _slices(np.float64)),
    "combine, span 10": (33, _combine(10)),
    "combine, span 1,000": (33, _combine(1_000)),
    "combine, span 100,000": (33, _combine(100_000)),
    "join": (96, _join),
    "distinct, 1,000 keys": (16, _distinct(_KEYS, 1)),
    "distinct, 1,000 keys far apart": (16, _distinct(_KEYS, 10**12)),
    "distinct, 10,000,000 keys far apart": (16, _distinct(10_000_000, 10**12)),
    "group, 1,000 keys": (24, _group(_KEYS)),
    "group, 1,000,000 keys": (24, _group(1_000_000)),
    "reduce, int64": (16, _reduce(_KEYS)),
    "reduce, float64": (16, _reduce(_KEYS, np.float64)),
    "reduce, one key": (16, _reduce(1)),
    "windows": (41, _windows),
    "join bounds": (32, _bounds),
    "join pairs": (16, _pairs),
    "sessions": (24, _sessions(_KEYS)),
    "sessions, one key": (24, _sessions(1)),
    "numbering": (16, _number),
}
