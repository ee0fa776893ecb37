"""Inputs of the running kernels, what the kernels make of them, and what it should be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpu_windows.kernels.cpu import running
from gpu_windows.rules import ADD, LONG_MAX, LONG_MIN, MAX, MIN
from tests.kernels.cases import HOWS
from tests.kernels.definitions import add_floats, add_ints, greatest_float, least_float, moments

Results = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Runs:
    """Entries in runs, none of which is empty.

    Parameters
    ----------
    lengths : list of int
    ints, floats : int64[n], float64[n]
    counts : int64[n]
        Of moments; those of 0 have no mean.
    valid : bool[n]
    """

    lengths: list[int]
    ints: NDArray[np.int64]
    floats: NDArray[np.float64]
    counts: NDArray[np.int64]
    valid: NDArray[np.bool_]

    @property
    def begins(self) -> NDArray[np.int64]:
        """Where the runs begin."""
        return np.cumsum(self.lengths, dtype=np.int64) - np.array(self.lengths, np.int64)

    @property
    def means(self) -> NDArray[np.float64]:
        """Finite, and 0 where nothing was counted."""
        finite = np.where(np.isfinite(self.floats), self.floats, 0.0)
        return np.where(self.counts > 0, finite, 0.0)


def evaluate(case: Runs) -> Results:
    """Run every running kernel."""
    begins, ints, floats = case.begins, case.ints, case.floats
    rest, m2 = np.zeros(len(ints)), case.counts.astype(np.float64)
    n, mean, _, squares = running.moments(begins, case.counts, case.means, rest, m2)
    made = {"pick": running.pick(begins, ints, case.valid), "n": n, "mean": mean, "m2": squares}
    for verb, how in HOWS.items():
        made[f"{verb} ints"] = running.fold(how, begins, ints)
        made[f"{verb} floats"] = running.fold(how, begins, floats)
    return made


def define(case: Runs) -> Results:
    """Return what `evaluate` should: of every entry what its run is up to it."""
    ends = [*case.begins.tolist(), len(case.ints)][1:]
    spans = [
        (begin, last + 1)
        for begin, end in zip(case.begins.tolist(), ends, strict=True)
        for last in range(begin, end)
    ]
    ints, floats = case.ints.tolist(), case.floats.tolist()
    of_ints: dict[int, Callable[[list[int]], int]] = {ADD: add_ints, MIN: min, MAX: max}
    of_floats: dict[int, Callable[[list[float]], float]] = {
        ADD: add_floats,
        MIN: least_float,
        MAX: greatest_float,
    }
    counts, means = case.counts.tolist(), case.means.tolist()
    parts = [(n, mean, float(n)) for n, mean in zip(counts, means, strict=True)]
    found: Results = {"pick": np.array([_pick(case, *span) for span in spans], np.int64)}
    for verb, how in HOWS.items():
        folded = [of_ints[how](ints[begin:end]) for begin, end in spans]
        found[f"{verb} ints"] = np.array(folded, np.int64)
        real = [of_floats[how](floats[begin:end]) for begin, end in spans]
        found[f"{verb} floats"] = np.array(real, np.float64)
    together = [moments(parts[begin:end]) for begin, end in spans]
    for i, (name, dtype) in enumerate((("n", np.int64), ("mean", np.float64), ("m2", np.float64))):
        found[name] = np.array([part[i] for part in together], dtype)
    return found


def _pick(case: Runs, begin: int, end: int) -> int:
    ints = case.ints.tolist()
    return min((i for i in range(begin, end) if case.valid[i]), key=ints.__getitem__, default=-1)


def assert_equal(found: Results, expected: Results) -> None:
    """Assert that results are equal: integers exactly, sums of floats but for rounding."""
    assert found.keys() == expected.keys()
    for name, wanted in expected.items():
        exact = wanted.dtype == np.int64 or name.startswith(("least", "greatest"))
        rtol, atol = (0.0, 0.0) if exact else (1e-9, 1e-3)
        np.testing.assert_allclose(
            found[name], wanted, rtol=rtol, atol=atol, equal_nan=True, err_msg=name
        )
        assert found[name].dtype == wanted.dtype, name


_FLOATS = st.one_of(
    st.floats(-1e6, 1e6, allow_subnormal=False),
    st.sampled_from([0.0, -0.0, float("nan"), float("inf"), float("-inf")]),
)


@st.composite
def runs(draw: st.DrawFn, most: int = 12) -> Runs:
    """Small runs: some of one entry, ties, extremes, nothing valid."""
    lengths = draw(st.lists(st.integers(1, most), max_size=5))
    count = sum(lengths)
    number = st.one_of(st.integers(-3, 3), st.sampled_from([LONG_MIN, LONG_MAX]))

    def values(strategy: st.SearchStrategy[Any], dtype: Any) -> NDArray[Any]:
        return np.array(draw(st.lists(strategy, min_size=count, max_size=count)), dtype)

    return Runs(
        lengths,
        values(number, np.int64),
        values(_FLOATS, np.float64),
        values(st.integers(0, 3), np.int64),
        values(st.booleans(), np.bool_),
    )
