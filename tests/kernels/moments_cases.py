"""Values far from 0 and near each other, and their moments by exact arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpu_windows.kernels.backend import Backend, select
from gpu_windows.kernels.cpu import running
from tests.kernels.cases import MOMENTS

#: Relative, of variances.
ACCURACY = Fraction(1, 10**13)

#: Where values lie, in about standard deviations from 0.
FAR = (0, 1, 10**3, 10**6, 10**9)


@dataclass(frozen=True)
class Slices:
    """Values in slices of consecutive ones, none of which is empty.

    Parameters
    ----------
    lengths : list of int
    values : int64[n] or float64[n]
    valid : bool[n], or empty for all
    """

    lengths: list[int]
    values: NDArray[Any]
    valid: NDArray[np.bool_]

    def known(self, first: int, last: int) -> list[Fraction]:
        """Return the values of some slices, exactly."""
        ends = np.cumsum([0, *self.lengths])
        rows = slice(ends[first], ends[last + 1])
        values = self.values[rows]
        return [*map(Fraction, (values[self.valid[rows]] if len(self.valid) else values).tolist())]


def squares_of(values: Sequence[Fraction]) -> Fraction:
    """Return the sum of squared deviations from the mean, exactly."""
    if not values:
        return Fraction(0)
    total = sum(values, Fraction())
    squares = sum((value * value for value in values), Fraction())
    return squares - total * total / len(values)


def check(backend: Backend, case: Slices) -> None:
    """Compare what kernels make of slices, and of slices combined, with exact arithmetic."""
    place, count = backend.to_device, len(case.lengths)
    groups = backend.grouping.runs(np.array(case.lengths, np.int64))
    parts = backend.reduce.moments_of(groups, place(case.values), place(case.valid))
    _compare(backend, case, parts, [(e, e) for e in range(count)])
    prefixes = running.moments(np.arange(0, count, 5), *map(backend.to_host, parts))
    _compare(select("cpu"), case, prefixes, [(e // 5 * 5, e) for e in range(count)])
    last = np.arange(count)
    first = np.maximum(last - 2, 0)
    codes = np.zeros(count, np.int64)
    found = backend.combine.ranges(
        place(codes), place(np.arange(count)), place(first), place(last), 3
    )
    ranges = backend.combine.moments(found, parts)
    _compare(backend, case, ranges, [*zip(first.tolist(), last.tolist(), strict=True)])
    of_two = [2] * (count // 2) + [1] * (count % 2)
    merged = backend.reduce.moments(backend.grouping.runs(np.array(of_two, np.int64)), *parts)
    _compare(backend, case, merged, [(e, min(e + 1, count - 1)) for e in range(0, count, 2)])


def _compare(backend: Backend, case: Slices, parts: Any, spans: Sequence[tuple[int, int]]) -> None:
    rows = dict(zip(MOMENTS, (backend.to_host(part).tolist() for part in parts), strict=True))
    for at, span in enumerate(spans):
        n, mean, rest, m2 = (rows[name][at] for name in MOMENTS)
        values = case.known(*span)
        wanted = squares_of(values)
        assert n == len(values)
        assert abs(Fraction(m2) - wanted) <= ACCURACY * wanted, (float(wanted), m2)
        if values:
            off = Fraction(mean) + Fraction(rest) - sum(values) / n
            assert abs(off) <= ACCURACY * (max(values) - min(values))


@st.composite
def slices(draw: st.DrawFn, most: int = 6) -> Slices:
    """Draw a case: integers or floats, some of them null, some all equal."""
    lengths = draw(st.lists(st.integers(1, most), min_size=1, max_size=12))
    seed = draw(st.integers(0, 1 << 20))
    return random_slices(seed, lengths, far=draw(st.sampled_from(FAR)), kind=draw(KINDS))


KINDS = st.sampled_from(["ints", "large ints", "floats", "an outlier", "equal"])


def random_slices(seed: int, lengths: list[int], *, far: int, kind: str) -> Slices:
    """Make values of a kind, so many standard deviations from 0."""
    random, count = np.random.default_rng(seed), sum(lengths)
    valid = random.random(count) < 0.8 if seed % 2 else np.empty(0, np.bool_)
    if kind == "ints":
        values: NDArray[Any] = 3 * far + random.integers(-5, 6, count)
    elif kind == "large ints":  # no float64 has them
        values = (1 << 62) // (seed % 9 + 1) + random.integers(-(10**8), 10**8, count)
    elif kind == "equal":
        values = np.full(count, far + 0.1)
    else:
        values = (far + random.standard_normal(count)) * 10.0 ** random.integers(-9, 9)
    if kind == "an outlier":
        values[random.integers(0, count)] = 0.1
    return Slices(lengths, values, valid)


#: Long slices: many blocks of a cell, many launches of a tile.
MANY = {
    "many to a slice": random_slices(2, [3_000, 700, 64, 65, 63, 1], far=10**9, kind="floats"),
    "the first is far": random_slices(4, [2_000] * 2, far=10**9, kind="an outlier"),
    "many slices": random_slices(7, [1, 2] * 400, far=10**9, kind="ints"),
    "many large integers": random_slices(5, [900, 200], far=0, kind="large ints"),
}
