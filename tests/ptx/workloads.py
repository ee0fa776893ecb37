"""Work that launches every kernel in several blocks: what it gives is compared between orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import rules
from gpu_windows.kernels import backend
from gpu_windows.kernels.cuda import keys, primitives, replicas, scan
from gpu_windows.kernels.cuda.scan import Lane, Moments
from gpu_windows.rules import LONG_MIN
from tests.kernels import join_cases, key_cases, range_cases
from tests.kernels.cases import Case, evaluate, random_case
from tests.kernels.range_cases import random_frames

CUDA = backend.select("cuda")
#: A block has 256 threads, so there are a dozen blocks.
ROWS = 3_000

Work = Callable[[], Any]


def bits(found: Any) -> list[bytes]:
    """Return the bytes of what a workload gives: results compare bit by bit."""
    if isinstance(found, pa.Table):
        return [repr(found.to_pydict()).encode()]
    if isinstance(found, dict):
        return [part for name in sorted(found) for part in bits(found[name])]
    if isinstance(found, tuple | list):
        return [part for each in found for part in bits(each)]
    return [b"" if found is None else np.ascontiguousarray(found).tobytes()]


def _kernels(case: Case) -> Work:
    return lambda: evaluate(CUDA, case)


_CASES = {
    "sliding": random_case(1, ROWS, 7, rules.sliding_grid(60, 7, 0), ticks=2_000),
    "one group": random_case(4, ROWS, 1, rules.sliding_grid(10**6, 10**6, 0), ticks=1_000),
    "one key, many tiles": random_case(2, ROWS, 1, rules.sliding_grid(900, 1, 3), ticks=2_900),
    "many keys": random_case(
        3, ROWS, 1_000, rules.sliding_grid(10, 10, 0), ticks=10**6, key_count=10**5
    ),
    "cumulative": random_case(5, ROWS, 5, rules.cumulative_grid(600, 10, 5), ticks=9_000),
}


# ---- queries


def _table(span: int) -> pa.Table:
    random = np.random.default_rng(2)
    ticks = np.sort(random.integers(0, span, ROWS))
    columns = {
        "ts": pa.array(ticks, pa.timestamp("us", "UTC")),
        "k": random.integers(0, 9, ROWS),
        "v": random.integers(0, 1_000, ROWS),
        "f": random.normal(0, 1e6, ROWS),
    }
    return pa.table(columns)


def _query(ask: Callable[[Any], Any], span: int = 10**9) -> Work:
    strategy = gw.WatermarkStrategy.for_monotonous_timestamps()
    timed = gw.stream(_table(span)).event_time("ts", strategy)
    keyed = timed.key_by("k")
    return lambda: ask(keyed)


_TWO_YEARS = 730 * 86_400 * 10**6
_MINUTE = gw.SlidingEventTimeWindows.of("60 seconds", "20 seconds")
_GAP = gw.EventTimeSessionWindows.with_gap("2 seconds")


def _floats(keyed: Any) -> Any:
    aggregates = {"s": gw.sum("f"), "d": gw.stddev("f"), "m": gw.max("f"), "a": gw.first("f")}
    return keyed.window(_MINUTE).options(device="cuda").aggregate(**aggregates)


def _sessions(keyed: Any) -> Any:
    aggregates = {"n": gw.count(), "total": gw.sum("v"), "low": gw.min("f"), "d": gw.stddev("v")}
    return keyed.window(_GAP).options(device="cuda").aggregate(**aggregates)


def _days(keyed: Any) -> Any:
    """Days of 23, 24 and 25 hours."""
    days = gw.CalendarWindows.of("1 day", time_zone="Europe/Berlin")
    return keyed.window(days).options(device="cuda").aggregate(n=gw.count(), total=gw.sum("v"))


def _over(keyed: Any) -> Any:
    aggregates = {"s": gw.sum("f"), "n": gw.count(), "m": gw.max("f")}
    return keyed.over(gw.Range("10 seconds")).options(device="cuda").aggregate(**aggregates)


def _join(keyed: Any) -> Any:
    joined = keyed.interval_join(keyed).between("-1 second", "1 second")
    return joined.options(device="cuda").select(["v"], ["f"])


# ---- what queries give kernels never or seldom


def _equal_ranks() -> Any:
    """Of the rows of a cell several have the least rank."""
    random = np.random.default_rng(9)
    rows = CUDA.to_device(random.integers(0, 9, ROWS)), CUDA.to_device(random.integers(0, 5, ROWS))
    groups, ranks = CUDA.grouping.group(*rows, 9, (0, 4)), random.integers(0, 2, ROWS)
    masks = CUDA.reduce.ALL, random.random(ROWS) < 0.8
    return [
        CUDA.to_host(CUDA.reduce.pick(groups, CUDA.to_device(ranks), CUDA.to_device(some)))
        for some in masks
    ]


def _many_cells() -> Any:
    """More cells than the table of a block has slots, where there are two blocks."""
    random = np.random.default_rng(11)
    codes, values = random.integers(0, 2_000, ROWS), CUDA.to_device(random.normal(0, 1e6, ROWS))
    rows = CUDA.to_device(codes), CUDA.to_device(np.zeros(ROWS, np.int64))
    groups, some = CUDA.grouping.group(*rows, 2_000, (0, 0)), CUDA.to_device(codes % 3 > 0)
    folds = rules.ADD, rules.MIN, rules.MAX
    return [CUDA.to_host(CUDA.reduce.reduce(how, groups, values, some)) for how in folds]


# ---- scans that queries put together from 65,536 entries on


def _scans() -> Any:
    random = np.random.default_rng(8)
    edges = CUDA.to_device((np.arange(ROWS) // 700 * 700).astype(np.int32))
    ranks = CUDA.to_device(random.integers(0, 99, ROWS))
    counts = CUDA.to_device(random.integers(1, 9, ROWS))
    means, low, m2 = (CUDA.to_device(random.random(ROWS)) for _ in range(3))
    picks = scan.PICK.finish(ranks, scan.PICK.scan(ranks, scan.BEFORE, edges, Lane(_entries())))
    moments = Moments(counts, means, low, m2)
    merged = scan.MOMENTS.finish(0, scan.MOMENTS.scan(0, scan.BEFORE, edges, moments))
    return [CUDA.to_host(part) for part in (*picks, *merged)]


def _entries() -> Any:
    return CUDA.to_device(np.arange(ROWS))


# ---- keys


def _distinct(count: int, apart: int) -> Work:
    """Few keys are found by value, others by hash, too many for a table by a sort."""
    values = np.random.default_rng(6).integers(0, count, 4 * ROWS) * apart

    def work() -> Any:
        return key_cases.evaluate(CUDA, key_cases.Values(values, CUDA.reduce.ALL))

    return work


def _float_keys() -> Any:
    random = np.random.default_rng(4)
    values, some = random.integers(0, 50, ROWS) / 7, random.random(ROWS) < 0.5
    bits = CUDA.to_host(CUDA.keys.bits(CUDA.to_device(values)))
    first, places = key_cases.evaluate(CUDA, key_cases.Values(bits, some))
    there = CUDA.to_device(places)
    return [first, places, CUDA.to_host(CUDA.keys.pairs(there, there, 51))]


def _sides() -> Any:
    random = np.random.default_rng(7)
    left, right = (
        join_cases.Rows(random.integers(0, 5, ROWS), random.integers(0, 2_000, ROWS))
        for _ in range(2)
    )
    return join_cases.evaluate(CUDA, join_cases.Join(left.sort(), right, -3, 3, [50]))


def share_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have few threads, and a place of a cell for all of them; a table of keys is soon full."""
    monkeypatch.setattr(replicas, "_PLACES", 1)
    monkeypatch.setattr(keys, "_MIN_SLOTS", 1 << 9)
    monkeypatch.setattr(keys, "_MAX_SLOTS", 1 << 9)
    monkeypatch.setattr(primitives, "_MAX_BLOCKS", 2)


def workloads() -> dict[str, Work]:
    """Return all of them, by name."""
    frames = random_frames(9, ROWS, 3, -200, 0, spread=2_000)
    whole = random_frames(10, ROWS, 1, LONG_MIN, 0, spread=2_000)
    return {
        **{name: _kernels(case) for name, case in _CASES.items()},
        "ranges": lambda: range_cases.evaluate(CUDA, frames),
        "ranges from the begin": lambda: range_cases.evaluate(CUDA, whole),
        "join": _sides,
        "query of floats": _query(_floats),
        "query of sessions": _query(_sessions),
        "query over rows": _query(_over),
        "query of days": _query(_days, _TWO_YEARS),
        "equal ranks": _equal_ranks,
        "many cells": _many_cells,
        "scans": _scans,
        "query of a join": _query(_join),
        "keys by value": _distinct(300, 1),
        "keys by hash": _distinct(300, 10**12),
        "keys by hash, crowded": _distinct(2 * ROWS, 10**12),
        "float keys": _float_keys,
    }
