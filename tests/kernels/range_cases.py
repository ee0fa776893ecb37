"""Inputs of what combines ranges of entries, what kernels make of them, and what that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.contract.joins import Side
from gpu_windows.rules import LONG_MAX, LONG_MIN
from tests.kernels.cases import HOWS
from tests.kernels.definitions import add_floats, add_ints, greatest_float, least_float, moments

Results = dict[str, NDArray[Any]]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Frames:
    """Entries, and for each the values that its range holds.

    Parameters
    ----------
    codes, values : int64[m]
        Sorted.
    lower, upper : int
        A range has the entries of the code with values from ``value + lower`` to ``value + upper``.
    ints, floats : int64[m], float64[m]
    """

    codes: Ints
    values: Ints
    lower: int
    upper: int
    ints: Ints
    floats: NDArray[np.float64]

    @property
    def length(self) -> int:
        """Number of values in a range."""
        return min(max(self.upper - self.lower + 1, 2), LONG_MAX)


def evaluate(backend: Backend, case: Frames) -> Results:
    """Combine the ranges that are not empty, some of them in another order."""
    place = backend.to_device
    codes, values, ints, floats = map(place, (case.codes, case.values, case.ints, case.floats))
    side = Side(codes, values)
    first, after = map(
        backend.to_host, backend.joins.range_bounds(side, side, case.lower, case.upper)
    )
    there = np.flatnonzero(first < after)
    bounds = place(first[there]), place(after[there] - 1)
    found = backend.combine.ranges(codes, values, *bounds, case.length)
    made: dict[str, Any] = {"first": found.first, "last": found.last}
    for verb, how in HOWS.items():
        made[f"{verb} ints"] = backend.combine.combine(how, found, ints)
        made[f"{verb} floats"] = backend.combine.combine(how, found, floats)
    ones, zeros = np.ones(len(case.ints), np.int64), np.zeros(len(case.ints))
    parts = place(ones), floats, place(zeros), place(zeros)
    n, mean, _, m2 = backend.combine.moments(found, parts)
    made |= {"n": n, "mean": mean, "m2": m2}
    made["pick"] = backend.combine.pick(found, ints)
    back = found.take(place(np.arange(found.count)[::-1].copy()), backend.take)
    made["least ints from the last"] = backend.combine.combine(rules.MIN, back, ints)
    return {name: backend.to_host(part) for name, part in made.items()}


def define(case: Frames) -> Results:
    """Return what `evaluate` must return."""
    rows = []
    for code, value in zip(case.codes.tolist(), case.values.tolist(), strict=True):
        low, high = value + case.lower, value + case.upper
        inside = (case.codes == code) & (case.values >= max(low, LONG_MIN))
        inside &= case.values <= min(high, LONG_MAX)
        if high >= LONG_MIN and low <= LONG_MAX and inside.any():
            rows.append(np.flatnonzero(inside))
    ints, floats = case.ints, case.floats
    n, mean, m2 = zip(
        *(moments([(1, float(x), 0.0) for x in floats[each]]) for each in rows), strict=True
    ) if rows else ((), (), ())  # fmt: skip
    least = [int(ints[each].min()) for each in rows]
    return {
        "first": _ints([each[0] for each in rows]),
        "last": _ints([each[-1] for each in rows]),
        "add ints": _ints([add_ints(ints[each].tolist()) for each in rows]),
        "add floats": _floats([add_floats(floats[each].tolist()) for each in rows]),
        "least ints": _ints(least),
        "least floats": _floats([least_float(floats[each].tolist()) for each in rows]),
        "greatest ints": _ints([int(ints[each].max()) for each in rows]),
        "greatest floats": _floats([greatest_float(floats[each].tolist()) for each in rows]),
        "n": _ints(n),
        "mean": _floats(mean),
        "m2": _floats(m2),
        "pick": _ints([each[int(ints[each].argmin())] for each in rows]),
        "least ints from the last": _ints(least[::-1]),
    }


def assert_equal(found: Results, expected: Results) -> None:
    """Assert that results are equal: integers exactly, sums of floats but for rounding."""
    assert found.keys() == expected.keys()
    for name, wanted in expected.items():
        rough = name in ("mean", "m2", "add floats")
        np.testing.assert_allclose(
            found[name], wanted, rtol=0, atol=1e-9 if rough else 0.0, err_msg=name
        )
        assert found[name].dtype == wanted.dtype, name


def _ints(values: Any) -> Ints:
    return np.array(values, np.int64)


def _floats(values: Any) -> NDArray[np.float64]:
    return np.array(values, np.float64)


def random_frames(
    seed: int, rows: int, keys: int, lower: int, upper: int, *, spread: int
) -> Frames:
    """Make a case of so many rows, whose values are in [-spread, spread)."""
    random = np.random.default_rng(seed)
    codes, values = random.integers(0, keys, rows), random.integers(-spread, spread, rows)
    order = np.lexsort((values, codes))
    ints, floats = random.integers(-99, 99, rows), random.integers(-40, 40, rows) / 4
    return Frames(codes[order], values[order], lower, upper, ints, floats)


@st.composite
def frames(draw: st.DrawFn, most: int = 20) -> Frames:
    """Draw a case."""
    seed, rows = draw(st.integers(0, 1 << 20)), draw(st.integers(0, most))
    ends = st.sampled_from([LONG_MIN, -3, LONG_MAX]) | st.integers(-30, 30)
    lower, upper = sorted((draw(ends), draw(ends)))
    spread = draw(st.sampled_from([3, 30, 1 << 40]))
    return random_frames(seed, rows, draw(st.integers(1, 3)), lower, upper, spread=spread)


MANY = {
    "a minute back": random_frames(1, 700, 2, -60, 0, spread=300),
    "all up to now": random_frames(2, 300, 3, LONG_MIN, 0, spread=50),
    "all from now on": random_frames(3, 300, 3, 0, LONG_MAX, spread=50),
    "everything": random_frames(4, 300, 3, LONG_MIN, LONG_MAX, spread=50),
    "around": random_frames(5, 700, 1, -20, 40, spread=5_000),
    "none of one's own": random_frames(6, 300, 2, -40, -10, spread=400),
    "one key, one time": random_frames(7, 600, 1, -5, 5, spread=1),
}
