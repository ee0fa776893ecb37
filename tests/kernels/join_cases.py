"""Inputs of the kernels of joins, what a set of kernels makes of them, and what it should be."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.contract.joins import Side
from gpu_windows.rules import AFTER, BEFORE, EITHER, LONG_MAX, LONG_MIN

Ints = NDArray[np.int64]
Results = dict[str, list[int] | None]

DIRECTIONS = {"before": BEFORE, "after": AFTER, "either": EITHER}


@dataclass(frozen=True)
class Rows:
    """The rows of a side, in any order.

    Parameters
    ----------
    codes, ts : int64[n]
    """

    codes: Ints
    ts: Ints

    @property
    def order(self) -> Ints:
        """What sorts them by (code, ts)."""
        return np.lexsort((self.ts, self.codes))

    def sort(self) -> Rows:
        """Return them sorted by (code, ts)."""
        return Rows(self.codes[self.order], self.ts[self.order])

    def between(self, begin: int, end: int) -> Rows:
        """Return some of them."""
        return Rows(self.codes[begin:end], self.ts[begin:end])


@dataclass(frozen=True)
class Join:
    """Two sides and which of their rows match.

    Parameters
    ----------
    left, right : Rows
    lower, upper : int
        Ticks.
    cuts : list of int
        Percentages: where the left rows, and the pairs, are cut into parts.
    """

    left: Rows
    right: Rows
    lower: int
    upper: int
    cuts: list[int]

    def parts(self, count: int) -> list[tuple[int, int]]:
        """Cut ``count`` things into parts, some of which may be empty."""
        edges = [0, *sorted(count * cut // 100 for cut in self.cuts), count]
        return list(pairwise(edges))


# ---- what kernels make of it


def evaluate(backend: Backend, case: Join) -> Results:
    """Run every kernel of joins, also part by part."""
    left, right = case.left.sort(), case.right.sort()
    made = {"left order": _order(backend, case.left), "right order": _order(backend, case.right)}
    made |= _pairs(backend, case, left, right)
    for name, direction in DIRECTIONS.items():
        made[name] = _nearest(backend, case, left, right, direction)
        made[f"{name} by part"] = [
            place
            for part in case.parts(len(left.ts))
            for place in _nearest(backend, case, left.between(*part), right, direction)
        ]
    return made


def _place(backend: Backend, rows: Rows) -> Side:
    return Side(backend.to_device(rows.codes), backend.to_device(rows.ts))


def _order(backend: Backend, rows: Rows) -> list[int] | None:
    order = backend.joins.sorted_by_time(*_place(backend, rows))
    return None if order is None else _list(backend, order, np.int64)


def _nearest(backend: Backend, case: Join, left: Rows, right: Rows, direction: int) -> list[int]:
    sides = _place(backend, left), _place(backend, right)
    found = backend.joins.nearest(*sides, case.lower, case.upper, direction)
    return _list(backend, found, np.int64)


def _pairs(backend: Backend, case: Join, left: Rows, right: Rows) -> Results:
    joins, sides = backend.joins, (_place(backend, left), _place(backend, right))
    first, last = joins.range_bounds(*sides, case.lower, case.upper)
    bounds = sides[1], case.lower, case.upper
    by_part = [
        joins.range_bounds(_place(backend, left.between(*part)), *bounds)
        for part in case.parts(len(left.ts))
    ]
    offsets = joins.pair_offsets(first, last)
    total = int(backend.to_host(offsets)[-1])
    expanded = [joins.expand_pairs(first, offsets, *part) for part in case.parts(total)]
    whole = joins.expand_pairs(first, offsets, 0, total)
    return {
        "first": _list(backend, first, np.int64),
        "last": _list(backend, last, np.int64),
        "first by part": [n for part, _ in by_part for n in _list(backend, part, np.int64)],
        "last by part": [n for _, part in by_part for n in _list(backend, part, np.int64)],
        "offsets": _list(backend, offsets, np.int64),
        "left": _list(backend, whole[0], np.int64),
        "right": _list(backend, whole[1], np.int64),
        "left by part": [n for part, _ in expanded for n in _list(backend, part, np.int64)],
        "right by part": [n for _, part in expanded for n in _list(backend, part, np.int64)],
        "matched": _list(backend, joins.has_match(first, last), np.bool_),
        "covered": _list(backend, joins.mark_covered(first, last, len(right.ts)), np.bool_),
    }


def _list(backend: Backend, values: Any, dtype: type[np.generic]) -> list[int]:
    found = backend.to_host(values)
    assert found.dtype == dtype
    made: list[int] = found.tolist()
    return made


def assert_equal(found: Results, expected: Results) -> None:
    """Assert that every part is that, and say shortly where it is not."""
    assert found.keys() == expected.keys()
    for name, wanted in expected.items():
        got = found[name]
        if got is None or wanted is None:
            assert (got is None) == (wanted is None), name
        else:
            np.testing.assert_array_equal(got, wanted, err_msg=name)


# ---- what it should be: every pair of rows is looked at, in Python's integers


def define(case: Join) -> Results:
    """Return what `evaluate` should."""
    left, right = case.left.sort(), case.right.sort()
    matches = [
        [
            j
            for j, (code, ts) in enumerate(_rows(right))
            if code == left_code
            and _saturated(left_ts + case.lower) <= ts <= _saturated(left_ts + case.upper)
        ]
        for left_code, left_ts in _rows(left)
    ]
    found = _defined_pairs(case, matches, left, right)
    found |= {"left order": _defined_order(case.left), "right order": _defined_order(case.right)}
    times: list[int] = right.ts.tolist()
    for name, direction in DIRECTIONS.items():
        rows = zip(left.ts.tolist(), matches, strict=True)
        chosen = [_defined_nearest(ts, matched, times, direction) for ts, matched in rows]
        found |= {name: chosen, f"{name} by part": chosen}
    return found


def _rows(rows: Rows) -> list[tuple[int, int]]:
    return list(zip(rows.codes.tolist(), rows.ts.tolist(), strict=True))


def _saturated(ts: int) -> int:
    return min(max(ts, LONG_MIN), LONG_MAX)


def _defined_order(rows: Rows) -> list[int] | None:
    values = _rows(rows)
    order = sorted(range(len(values)), key=values.__getitem__)
    return None if order == list(range(len(values))) else order


def _defined_pairs(case: Join, matches: list[list[int]], left: Rows, right: Rows) -> Results:
    low = [(code, _saturated(ts + case.lower)) for code, ts in _rows(left)]
    first = [sum(row < edge for row in _rows(right)) for edge in low]
    counts = [len(matched) for matched in matches]
    pairs = [(i, j) for i, matched in enumerate(matches) for j in matched]
    found: Results = {
        "first": first,
        "last": [begin + count for begin, count in zip(first, counts, strict=True)],
        "left": [i for i, _ in pairs],
        "right": [j for _, j in pairs],
    }
    by_part = {f"{name} by part": values for name, values in found.items()}
    others: Results = {
        "offsets": [sum(counts[:i]) for i in range(len(counts) + 1)],
        "matched": [count > 0 for count in counts],
        "covered": [any(j in matched for matched in matches) for j in range(len(right.ts))],
    }
    return found | by_part | others


def _defined_nearest(ts: int, matched: list[int], times: list[int], direction: int) -> int:
    before = [j for j in matched if times[j] <= ts]
    after = [j for j in matched if times[j] >= ts]
    former = max(before, key=lambda j: (times[j], j), default=-1)
    latter = min(after, key=lambda j: (times[j], j), default=-1)
    if direction == BEFORE or (direction == EITHER and not after):
        return former
    if direction == AFTER or not before:
        return latter
    return former if ts - times[former] <= times[latter] - ts else latter


# ---- cases

_NEAR = st.integers(-6, 6)
_ENDS = st.sampled_from(
    [LONG_MIN, LONG_MIN + 1, LONG_MIN // 2, -1, 0, 1, LONG_MAX // 2, LONG_MAX - 1, LONG_MAX]
)
_TICKS = st.sampled_from([_NEAR, _NEAR, st.integers(-60, 60), _ENDS, st.one_of(_NEAR, _ENDS)])
_BOUNDS = st.one_of(_NEAR, _NEAR, _ENDS, st.integers(LONG_MIN, LONG_MAX))


@st.composite
def joins(draw: st.DrawFn, most_rows: int = 30) -> Join:
    """Small sides: one key or several, many ties, times and bounds at the ends of int64."""
    key, ts = st.integers(0, draw(st.sampled_from([0, 2, 9]))), draw(_TICKS)
    sides = [draw(st.lists(st.tuples(key, ts), max_size=most_rows)) for _ in range(2)]
    lower, upper = sorted([draw(_BOUNDS), draw(_BOUNDS)])
    cuts = draw(st.lists(st.integers(0, 100), max_size=3))
    return Join(_side(sides[0]), _side(sides[1]), lower, upper, cuts)


def _side(rows: list[tuple[int, int]]) -> Rows:
    codes, ts = (np.array([row[part] for row in rows], np.int64) for part in (0, 1))
    return Rows(codes, ts)


def random_join(
    seed: int, left: int, right: int, keys: int, *, ticks: int, lower: int, upper: int
) -> Join:
    """Return sides of so many rows, in order of time but for every fourth row."""
    random = np.random.default_rng(seed)

    def side(rows: int) -> Rows:
        ts = np.sort(random.integers(0, ticks, rows))
        late = random.random(rows) < 0.25
        ts[late] = random.integers(0, ticks, int(late.sum()))
        return Rows(random.integers(0, keys, rows), ts)

    return Join(side(left), side(right), lower, upper, [10, 37, 37, 80])


#: Named cases of several tiles, ranges and gaps, for every set of kernels.
MANY = {
    "one key, wide ranges": random_join(1, 120, 90, 1, ticks=50, lower=-20, upper=5),
    "many keys, few matches": random_join(2, 150, 150, 60, ticks=5_000, lower=-100, upper=100),
    "few left rows": random_join(3, 3, 400, 2, ticks=600, lower=-7, upper=300),
    "few right rows": random_join(4, 400, 3, 2, ticks=600, lower=-300, upper=7),
    "tiles": random_join(11, 700, 800, 3, ticks=900, lower=-4, upper=6),
    "all of a key": random_join(5, 60, 60, 3, ticks=99, lower=LONG_MIN, upper=LONG_MAX),
    "later only": random_join(6, 150, 150, 4, ticks=300, lower=3, upper=9),
    "earlier only": random_join(7, 150, 150, 4, ticks=300, lower=-9, upper=-3),
    "nothing": random_join(8, 0, 0, 1, ticks=9, lower=0, upper=0),
    "nothing to the right": random_join(9, 5, 0, 1, ticks=9, lower=0, upper=0),
    "nothing to the left": random_join(10, 0, 5, 1, ticks=9, lower=0, upper=0),
}
