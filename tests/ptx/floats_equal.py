"""How far floats of CUDA kernels are from those of CPU kernels, as docs/gpus.md says.

Integers, counts, extremes and picked values are the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw

ROWS = 60_000
#: Units in the last place: twice what was found.
MOST = {"total": 16, "mean": 16, "variance": 56, "stddev": 28}
EXACT = ("n", "ints", "least", "greatest", "first", "at_most")
AGGREGATES = {
    "total": gw.sum("x"), "mean": gw.mean("x"), "variance": gw.variance("x"),
    "stddev": gw.stddev("x"), "n": gw.count("x"), "ints": gw.sum("i"), "least": gw.min("x"),
    "greatest": gw.max("x"), "first": gw.first("x"), "at_most": gw.arg_max("i", "x"),
    "size": gw.sum("size"),
}  # fmt: skip


def values(kind: str) -> Any:
    random = np.random.default_rng(1)
    made = {
        "of one sign": random.random(ROWS) * 1e6,
        "of both signs": random.normal(0, 1e3, ROWS),
        "far from 0": 1e9 + random.normal(0, 1, ROWS),
    }
    return made[kind]


def both(kind: str) -> tuple[pa.Table, pa.Table]:
    """Return results of the CPU and of the CUDA kernels."""
    random, x = np.random.default_rng(2), values(kind)
    ticks = np.sort(random.integers(0, 90 * 60 * 10**6, ROWS))
    columns = {
        "ts": pa.array(ticks, pa.timestamp("us", "UTC")), "k": random.integers(0, 20, ROWS),
        "x": x, "size": np.abs(x), "i": random.integers(-(2**50), 2**50, ROWS),
    }  # fmt: skip
    strategy = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(pa.table(columns)).event_time("ts", strategy).key_by("k")
    windows = keyed.window(gw.SlidingEventTimeWindows.of("10 minutes", "1 minute"))
    found = (windows.options(device=device).aggregate(**AGGREGATES) for device in ("cpu", "cuda"))
    return tuple(found)


def apart(one: Any, other: Any, size: Any = None) -> float:
    """Return by how many units in the last place of the greater, or of a size, they differ."""
    a, b = one.to_numpy(), other.to_numpy()
    size = np.maximum(np.abs(a), np.abs(b)) if size is None else size.to_numpy()
    return float(np.nanmax(np.abs(a - b) / np.spacing(size)))


@pytest.mark.parametrize("kind", ["of one sign", "of both signs", "far from 0"])
def test_floats_differ_by_few_units_in_the_last_place(kind: str) -> None:
    cpu, cuda = both(kind)
    assert len(cpu) > 1_000
    for name in EXACT:
        assert cpu[name].equals(cuda[name]), name
    for name, most in MOST.items():
        if kind == "of both signs" and name in ("total", "mean"):
            continue  # what cancels out is compared with what was added
        assert apart(cpu[name], cuda[name]) <= most, name
    assert apart(cpu["total"], cuda["total"], cpu["size"]) <= MOST["total"]


def test_some_floats_do_differ() -> None:
    cpu, cuda = both("of one sign")
    assert apart(cpu["total"], cuda["total"]) > 0
