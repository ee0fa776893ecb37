"""Every kind of kernel at several sizes: device and host time, and the share of the copy's rate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.gpu.scene import Row, Scene, timed
from gpu_windows import rules
from gpu_windows.errors import DeviceMemoryError
from gpu_windows.kernels.backend import Backend, select
from gpu_windows.kernels.contract.joins import Side
from gpu_windows.kernels.contract.rows import Limits
from gpu_windows.rules import ADD

_KEYS = 1_000
_MINUTE, _DAY = 60_000_000, 86_400_000_000
#: A kernel is not tried at a larger size once a run takes so many seconds.
_SLOW = 2.0

Work = Callable[[], object]
#: Makes the work of a kernel for so many rows.
Make = Callable[[Backend, int], Work]


def run(scene: Scene) -> Iterator[Row]:
    """Yield a measurement of every kernel and size; small sizes of all come first."""
    backend, slow = select(scene.device), set()
    for rows in scene.sizes(17, 20, 23, 26):
        for name, (bytes_a_row, make) in KERNELS.items():
            if name in slow or ("one key" in name and rows > 1 << 20):
                continue
            row = _measured(scene, backend, rows, make)
            moved = bytes_a_row * rows
            if "device_s" in row:
                row["ideal_bytes"] = moved
                if row["device_s"] > _SLOW:
                    slow.add(name)
                if scene.copy_rate:
                    row["share_of_copy"] = moved / row["device_s"] / scene.copy_rate
            yield {"what": name, "rows": rows, **row}


def _measured(scene: Scene, backend: Backend, rows: int, make: Make) -> Row:
    try:
        work = make(backend, rows)
        device, host = timed(scene, work)
    except DeviceMemoryError as error:
        return {"no_room": str(error)}
    return {"device_s": device, "host_s": host, "rows_per_s": rows / device}


# ---- the kernels, and how many bytes a row they must move


def _assign(backend: Backend, rows: int) -> Work:
    grid = rules.sliding_grid(60 * _MINUTE, _MINUTE, 0)
    ts = backend.to_device(np.random.default_rng(0).integers(0, _DAY, rows))
    valid = backend.to_device(np.empty(0, np.bool_))
    out = backend.empty(rows, np.int64), backend.empty(rows, np.int8)
    limits = Limits(rules.earliest_tick(grid), rules.latest_tick(grid), 0, 0)
    return lambda: backend.assign.assign_slices(ts, valid, grid, limits, *out)


def _columns(backend: Backend, rows: int, keys: int, ticks: int = 1_440) -> tuple[Any, Any]:
    """Return key codes and slices of rows in order of time."""
    codes = np.random.default_rng(1).integers(0, keys, rows)
    slices = np.arange(rows) * ticks // rows
    return backend.to_device(codes), backend.to_device(slices)


def _group(keys: int) -> Make:
    def make(backend: Backend, rows: int) -> Work:
        columns = _columns(backend, rows, keys)
        return lambda: backend.grouping.group(*columns, keys)

    return make


def _distinct(keys: int, apart: int) -> Make:
    def make(backend: Backend, rows: int) -> Work:
        values = np.random.default_rng(5).integers(0, keys, rows) * apart
        there = backend.to_device(values), backend.to_device(np.empty(0, np.bool_))
        return lambda: backend.keys.distinct(*there)

    return make


def _reduce(keys: int) -> Make:
    def make(backend: Backend, rows: int) -> Work:
        groups = backend.grouping.group(*_columns(backend, rows, keys, 60), keys)
        values = backend.to_device(np.random.default_rng(2).integers(-(2**40), 2**40, rows))
        every = backend.to_device(np.empty(0, np.bool_))
        return lambda: backend.reduce.reduce(ADD, groups, values, every)

    return make


def _combine(span: int) -> Make:
    def make(backend: Backend, rows: int) -> Work:
        keys = 4
        length = rows // keys
        codes = backend.to_device(np.repeat(np.arange(keys), length))
        slices = backend.to_device(np.tile(np.arange(length), keys))
        grid = rules.sliding_grid(span, 1, 0)
        values = backend.to_device(np.random.default_rng(3).integers(0, 100, keys * length))
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
        return lambda: backend.sessions.group(codes, starts, ends, keys)

    return make


def _running(length: int | None) -> Make:
    def make(backend: Backend, rows: int) -> Work:
        begins = backend.to_device(np.arange(0, rows, length or rows))
        values = backend.to_device(np.random.default_rng(4).integers(0, 100, rows))
        return lambda: backend.running.fold(ADD, begins, values)

    return make


def _number(backend: Backend, rows: int) -> Work:
    codes, _ = _columns(backend, rows, _KEYS)
    counts = backend.to_device(np.zeros(_KEYS, np.int64))
    return lambda: backend.numbering.number(codes, counts)


def _join(backend: Backend, rows: int) -> Work:
    length = rows // _KEYS
    codes = backend.to_device(np.repeat(np.arange(_KEYS), length))
    left = Side(codes, backend.to_device(np.tile(np.arange(length) * 1_000, _KEYS)))
    right = Side(codes, backend.to_device(np.tile(np.arange(length) * 1_000 + 400, _KEYS)))
    return lambda: backend.joins.range_bounds(left, right, -500, 500)


def _pairs(backend: Backend, rows: int) -> Work:
    first = backend.to_device(np.arange(rows // 4))
    last = backend.to_device(np.arange(rows // 4) + 4)
    offsets = backend.joins.pair_offsets(first, last)
    count = rows // 4 * 4
    return lambda: backend.joins.expand_pairs(first, offsets, 0, count)


KERNELS: Mapping[str, tuple[int, Make]] = {
    "distinct, 1,000 keys": (16, _distinct(_KEYS, 1)),
    "distinct, 1,000 keys far apart": (16, _distinct(_KEYS, 10**12)),
    "distinct, 10,000,000 keys far apart": (16, _distinct(10_000_000, 10**12)),
    "assign": (17, _assign),
    "group, 1,000 keys": (24, _group(_KEYS)),
    "group, 1,000,000 keys": (24, _group(1_000_000)),
    "reduce": (16, _reduce(_KEYS)),
    "reduce, one key": (16, _reduce(1)),
    "windows": (41, _windows),
    "combine, span 10": (33, _combine(10)),
    "combine, span 1,000": (33, _combine(1_000)),
    "combine, span 100,000": (33, _combine(100_000)),
    "sessions": (24, _sessions(_KEYS)),
    "sessions, one key": (24, _sessions(1)),
    "running, runs of 100": (16, _running(100)),
    "running, one key": (16, _running(None)),
    "numbering": (16, _number),
    "join bounds": (32, _join),
    "join pairs": (16, _pairs),
}
