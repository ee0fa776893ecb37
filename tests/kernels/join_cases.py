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
Results = dict[str, list[int]]

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
    made = {
        f"{side} {name}": values
        for side, rows in (("left", case.left), ("right", case.right))
        for name, values in _sorted(backend, rows).items()
    }
    made |= _pairs(backend, case)
    for name, direction in DIRECTIONS.items():
        made[name] = _nearest(backend, case, case.left, case.right, direction)
        made[f"{name} by part"] = [
            place
            for part in case.parts(len(case.left.ts))
            for place in _nearest(backend, case, case.left.between(*part), case.right, direction)
        ]
    return made


def _place(backend: Backend, rows: Rows) -> Side:
    return Side(backend.to_device(rows.codes), backend.to_device(rows.ts))


def _sorted(backend: Backend, rows: Rows) -> Results:
    """Return the numbers of sorted rows, their codes and times, and whether they were sorted."""
    found = backend.joins.sort(*_place(backend, rows))
    made: Results = {
        "numbers": _list(backend, found.numbers, np.int32),
        "codes": _list(backend, found.codes, np.int64),
        "ts": _list(backend, found.ts, np.int64),
    }
    return made | {"were sorted": [found.were_sorted]}


def _nearest(backend: Backend, case: Join, left: Rows, right: Rows, direction: int) -> list[int]:
    lefts, rights = (backend.joins.sort(*_place(backend, rows)) for rows in (left, right))
    found = backend.joins.nearest(lefts, rights, case.lower, case.upper, direction)
    return _list(backend, found, np.int64)


def _pairs(backend: Backend, case: Join) -> Results:
    joins = backend.joins
    left, right = (joins.sort(*_place(backend, rows)) for rows in (case.left, case.right))
    first, last = joins.range_bounds(left.side, right.side, case.lower, case.upper)
    rows = case.left.sort()
    by_part = [
        joins.range_bounds(_place(backend, rows.between(*part)), right.side, case.lower, case.upper)
        for part in case.parts(len(rows.ts))
    ]
    offsets, total = joins.pair_offsets(first, last)
    numbers = left.numbers, right.numbers
    expanded = [joins.expand_pairs(*numbers, first, offsets, *part) for part in case.parts(total)]
    whole = joins.expand_pairs(*numbers, first, offsets, 0, total)
    matched = joins.has_match(left.numbers, first, last)
    return {
        "first": _list(backend, first, np.int64),
        "last": _list(backend, last, np.int64),
        "first by part": [n for part, _ in by_part for n in _list(backend, part, np.int64)],
        "last by part": [n for _, part in by_part for n in _list(backend, part, np.int64)],
        "offsets": [*_list(backend, offsets, np.int64), total],
        "left": _list(backend, whole[0], np.int32),
        "right": _list(backend, whole[1], np.int32),
        "left by part": [n for part, _ in expanded for n in _list(backend, part, np.int32)],
        "right by part": [n for _, part in expanded for n in _list(backend, part, np.int32)],
        "matched": _list(backend, matched, np.bool_),
        "covered": _list(backend, joins.mark_covered(right.numbers, first, last), np.bool_),
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
        np.testing.assert_array_equal(found[name], wanted, err_msg=name)


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
    for side, rows in (("left", case.left), ("right", case.right)):
        found |= {f"{side} {name}": values for name, values in _defined_order(rows).items()}
    times: list[int] = right.ts.tolist()
    numbers = case.right.order.tolist()
    for name, direction in DIRECTIONS.items():
        chosen = np.zeros(len(left.ts), np.int64)
        for i, ts, matched in zip(case.left.order, left.ts.tolist(), matches, strict=True):
            place = _defined_nearest(ts, matched, times, direction)
            chosen[i] = numbers[place] if place >= 0 else -1
        found |= {name: chosen.tolist(), f"{name} by part": chosen.tolist()}
    return found


def _rows(rows: Rows) -> list[tuple[int, int]]:
    return list(zip(rows.codes.tolist(), rows.ts.tolist(), strict=True))


def _saturated(ts: int) -> int:
    return min(max(ts, LONG_MIN), LONG_MAX)


def _defined_order(rows: Rows) -> Results:
    values = _rows(rows)
    order = sorted(range(len(values)), key=values.__getitem__)
    return {
        "numbers": order,
        "codes": [values[i][0] for i in order],
        "ts": [values[i][1] for i in order],
        "were sorted": [order == list(range(len(values)))],
    }


def _defined_pairs(case: Join, matches: list[list[int]], left: Rows, right: Rows) -> Results:
    low = [(code, _saturated(ts + case.lower)) for code, ts in _rows(left)]
    first = [sum(row < edge for row in _rows(right)) for edge in low]
    counts = [len(matched) for matched in matches]
    lefts, rights = case.left.order.tolist(), case.right.order.tolist()
    pairs = [(lefts[i], rights[j]) for i, matched in enumerate(matches) for j in matched]
    joined, covered = {i for i, _ in pairs}, {j for _, j in pairs}
    found: Results = {
        "first": first,
        "last": [begin + count for begin, count in zip(first, counts, strict=True)],
        "left": [i for i, _ in pairs],
        "right": [j for _, j in pairs],
    }
    by_part = {f"{name} by part": values for name, values in found.items()}
    others: Results = {
        "offsets": [*(sum(counts[:i]) for i in range(len(counts) + 1)), sum(counts)],
        "matched": [i in joined for i in range(len(left.ts))],
        "covered": [j in covered for j in range(len(right.ts))],
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
    key, ts = st.integers(-2, draw(st.sampled_from([0, 2, 9]))), draw(_TICKS)
    sides = [draw(st.lists(st.tuples(key, ts), max_size=most_rows)) for _ in range(2)]
    lower, upper = sorted([draw(_BOUNDS), draw(_BOUNDS)])
    cuts = draw(st.lists(st.integers(0, 100), max_size=3))
    return Join(_side(sides[0]), _side(sides[1]), lower, upper, cuts)


def _side(rows: list[tuple[int, int]]) -> Rows:
    codes, ts = (np.array([row[part] for row in rows], np.int64) for part in (0, 1))
    return Rows(codes, ts)


def random_join(
    seed: int, left: int, right: int, keys: int, *, ticks: int, lower: int, upper: int,
    late: float = 0.25, apart: int = 1,
) -> Join:  # fmt: skip
    """Return sides of so many rows, in order of time but for a share, with codes so far apart."""
    random = np.random.default_rng(seed)

    def side(rows: int) -> Rows:
        ts = np.sort(random.integers(0, ticks, rows))
        is_late = random.random(rows) < late
        ts[is_late] = random.integers(0, ticks, int(is_late.sum()))
        return Rows(random.integers(-2, keys, rows) * apart, ts)

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
    "in time": random_join(12, 150, 90, 4, ticks=300, lower=-9, upper=9, late=0),
    "in time, codes of 16 bits": random_join(
        13, 90, 150, 9, ticks=300, lower=-9, upper=9, late=0, apart=999
    ),
    "in time, codes of 32 bits": random_join(
        14, 90, 90, 9, ticks=300, lower=-9, upper=9, late=0, apart=10**7
    ),
    "in time, codes of 64 bits": random_join(
        15, 90, 90, 9, ticks=300, lower=-9, upper=9, late=0, apart=10**12
    ),
    "nothing": random_join(8, 0, 0, 1, ticks=9, lower=0, upper=0),
    "nothing to the right": random_join(9, 5, 0, 1, ticks=9, lower=0, upper=0),
    "nothing to the left": random_join(10, 0, 5, 1, ticks=9, lower=0, upper=0),
}
