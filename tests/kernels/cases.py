"""Inputs of the kernels, and what a set of kernels makes of them: every kernel, every partial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.contract.rows import Assigned, Limits
from gpu_windows.rules import ADD, LONG_MAX, LONG_MIN, MAX, MIN, Grid
from tests.simulation.calendars import small_days

Results = dict[str, NDArray[Any]]

#: The parts of moments. The rest is what the mean is off by: less than what is compared here, see
#: `tests.kernels.moments_cases`.
MOMENTS = ("n", "mean", "rest", "m2")

#: Days of unequal length, some of them empty.
UNITS = small_days(3, has_empty=True)

HOWS = {"add": ADD, "least": MIN, "greatest": MAX}


@dataclass(frozen=True)
class Case:
    """A batch of rows and what to do with it.

    Parameters
    ----------
    grid : Grid
    ts : int64[n]
        Ticks.
    present : bool[n] or bool[0]
        Whether the timestamp is not null.
    codes : int64[n]
        Key codes in [0, key_count).
    key_count : int
    ints, floats : int64[n], float64[n]
        The floats include NaN and infinities.
    weights : int64[n]
        Counts of the partial moments (weight, `finite`, weight).
    valid : bool[n] or bool[0]
    lateness, watermark : int
        Ticks.
    windows : (int, int)
        Numbers of the windows wanted, counted from the first that holds a row.
    """

    grid: Grid
    ts: NDArray[np.int64]
    present: NDArray[np.bool_]
    codes: NDArray[np.int64]
    key_count: int
    ints: NDArray[np.int64]
    floats: NDArray[np.float64]
    weights: NDArray[np.int64]
    valid: NDArray[np.bool_]
    lateness: int
    watermark: int
    windows: tuple[int, int]

    @property
    def range(self) -> tuple[int, int]:
        """First and last tick of which the windows fit into int64."""
        return rules.earliest_unit(self.grid), rules.latest_unit(self.grid)

    @property
    def keys(self) -> int:
        """Number of key codes up to the greatest that is there."""
        return int(self.codes.max(initial=-1)) + 1

    @property
    def ends(self) -> NDArray[np.int64]:
        """The end of every row's own session: 1 to 12 ticks after it."""
        gaps = self.ints % 12 + 1
        return np.where(self.ts > LONG_MAX - gaps, LONG_MAX, self.ts + gaps)

    @property
    def finite(self) -> NDArray[np.float64]:
        """The floats, zero for NaN, infinities and where the weight is 0."""
        return np.where(np.isfinite(self.floats) & (self.weights > 0), self.floats, 0.0)


def evaluate(backend: Backend, case: Case) -> Results:
    """Run every kernel of a back end.

    Returns
    -------
    dict of str to array
        Of rows: "slices", "status", "units", "numbers"; of keys: "counts"; of groups of accepted
        rows: "group ..."; of sessions of all rows: "session ..."; of windows: "window ...".
    """
    place = backend.to_device
    assigned = backend.assign.assign_slices(
        place(case.ts), place(case.present), case.grid,
        Limits(*case.range, case.lateness, case.watermark),
    )  # fmt: skip
    seen = assigned.summary
    found = {"slices": backend.to_host(assigned.slices), "status": backend.to_host(assigned.status)}
    found["units"] = backend.to_host(backend.assign.count_units(place(case.ts), UNITS))
    keep = found["status"] == rules.ACCEPTED
    assert seen.rejected == np.count_nonzero(~keep)
    kept = found["slices"][keep]
    assert seen[1:] == (kept.min(initial=LONG_MAX), kept.max(initial=LONG_MIN))
    groups = backend.grouping.group(
        place(case.codes[keep]), place(kept), case.key_count, seen[1:] if keep.any() else None
    )
    partials = _reduce(backend, case, keep, groups)
    found |= {f"group {name}": backend.to_host(part) for name, part in partials.items()}
    _check_accepted(backend, case, keep, assigned, found)
    found |= {f"session {name}": part for name, part in _sessions(backend, case).items()}
    numbered = backend.keys.number(place(case.codes), place(np.zeros(case.keys, int)))
    found |= dict(zip(("numbers", "counts"), map(backend.to_host, numbered), strict=True))
    made = _combine(backend, case, groups, partials)
    found |= {f"window {name}": backend.to_host(part) for name, part in made.items()}
    return {name: part for name, part in found.items() if not name.endswith("rest")}


def _check_accepted(
    backend: Backend, case: Case, keep: NDArray[np.bool_], assigned: Assigned, found: Results
) -> None:
    """Assert that accepted rows have the same groups where nobody takes the rejected ones out."""
    reduce, codes = backend.reduce, backend.to_device(case.codes)
    groups = backend.grouping.group_accepted(codes, assigned, case.key_count)
    if groups is None:
        assert not keep.all()
        return
    ints, floats, valid = map(backend.to_device, (case.ints, case.floats, case.valid))
    high, low = reduce.exact_sum(groups, ints, valid)
    made = {
        "codes": groups.codes,
        "slices": groups.slices,
        "rows": groups.rows,
        "count": reduce.count(groups, valid),
        "add all ints": reduce.reduce(ADD, groups, ints, reduce.ALL),
        "least floats": reduce.reduce(MIN, groups, floats, valid),
        "high": high,
        "low": low,
        "n of weights": reduce.moments_of(groups, backend.to_device(case.weights), valid)[0],
    }
    for name, part in made.items():
        wanted = found[f"group {name}"]
        np.testing.assert_array_equal(backend.to_host(part), wanted, f"accepted {name}")
    picked = backend.to_host(reduce.pick(groups, ints, reduce.ALL))
    wanted = np.flatnonzero(keep)[found["group pick all"]]
    np.testing.assert_array_equal(picked, wanted, "accepted pick")


def _sessions(backend: Backend, case: Case) -> Results:
    place = backend.to_device
    ends = place(case.ends)
    groups = backend.grouping.group_sessions(
        place(case.codes), place(case.ts), ends, case.key_count
    )
    made = {
        "codes": groups.codes,
        "starts": groups.slices,
        "rows": groups.rows,
        "ends": backend.reduce.reduce(rules.MAX, groups, ends, backend.reduce.ALL),
    }
    return {name: backend.to_host(part) for name, part in made.items()}


def _reduce(backend: Backend, case: Case, keep: NDArray[np.bool_], groups: Any) -> dict[str, Any]:
    reduce = backend.reduce
    lanes = {"ints": case.ints[keep], "floats": case.floats[keep]}
    lanes = {name: backend.to_device(lane) for name, lane in lanes.items()}
    valid = backend.to_device(case.valid[keep] if len(case.valid) else case.valid)
    n, mean = (backend.to_device(part[keep]) for part in (case.weights, case.finite))
    rest, m2 = (backend.to_device(case.weights[keep] * factor) for factor in (0.0, 1.0))
    moments = reduce.moments(groups, n, mean, rest, m2)
    made = {"codes": groups.codes, "slices": groups.slices, "rows": groups.rows}
    made |= {"count": reduce.count(groups, valid), "count all": reduce.count(groups, reduce.ALL)}
    for name, lane in lanes.items():
        for verb, how in HOWS.items():
            made[f"{verb} {name}"] = reduce.reduce(how, groups, lane, valid)
            made[f"{verb} all {name}"] = reduce.reduce(how, groups, lane, reduce.ALL)
    for name, taken in (("", valid), (" all", reduce.ALL)):
        halves = reduce.exact_sum(groups, lanes["ints"], taken)
        made |= dict(zip((f"high{name}", f"low{name}"), halves, strict=True))
    made |= dict(zip(MOMENTS, moments, strict=True))
    for name, taken in (("", valid), (" all", reduce.ALL)):
        moments = reduce.moments_of(groups, mean, taken)
        names = f"n of{name}", f"of{name} mean", f"of{name} rest", f"of{name} m2"
        made |= dict(zip(names, moments, strict=True))
    moments = reduce.moments_of(groups, n, valid)
    names = "n of weights", "of weights mean", "of weights rest", "of weights m2"
    made |= dict(zip(names, moments, strict=True))
    made["pick"] = reduce.pick(groups, lanes["ints"], valid)
    made["pick all"] = reduce.pick(groups, lanes["ints"], reduce.ALL)
    return made


def _combine(
    backend: Backend, case: Case, groups: Any, partials: Mapping[str, Any]
) -> dict[str, Any]:
    low, high = window_range(case, backend.to_host(groups.slices))
    entries = groups.codes, groups.slices, case.grid, low, high
    found = backend.combine.windows(*entries)
    total = np.array([backend.combine.total_windows(*entries)])
    made = {"total": total, "numbers": found.numbers, "first": found.first, "last": found.last}
    made |= dict(zip(("starts", "ends"), backend.combine.bounds(found), strict=True))
    for length in () if case.grid.steps else (1, 3):
        at = backend.combine.last_slices(groups.codes, groups.slices, found, length)
        first, some = (backend.to_host(part) for part in at)
        made[f"first of {length} slices"] = first
        made[f"some in {length} slices"] = some
    for name in ("ints", "floats"):
        for verb, how in HOWS.items():
            lane = partials[f"{verb} {name}"]
            made[f"{verb} {name}"] = backend.combine.combine(how, found, lane)
    n, mean, rest, m2 = (partials[name] for name in MOMENTS)
    moments = backend.combine.moments(found, (n, mean, rest, m2))
    made |= dict(zip(MOMENTS, moments, strict=True))
    made["pick"] = backend.combine.pick(found, partials["least ints"])
    back = found.take(backend.to_device(np.arange(found.count)[::-1]), backend.take)
    made["numbers from the last"] = back.numbers
    made["add ints from the last"] = backend.combine.combine(ADD, back, partials["add ints"])
    made["pick from the last"] = backend.combine.pick(back, partials["least ints"])
    return made


def window_range(case: Case, slices: NDArray[np.int64]) -> tuple[int, int]:
    """Return the numbers of the first and the last window that a case asks for."""
    if len(slices) == 0:
        return 0, 0
    base = int(rules.first_window(int(slices.min()), case.grid))
    low, high = (min(max(base + shift, LONG_MIN), LONG_MAX) for shift in case.windows)
    return low, high


def assert_equal(found: Results, expected: Results, case: Case) -> None:
    """Assert that results are equal: integers exactly, sums of floats but for rounding."""
    assert found.keys() == expected.keys()
    scale = 1.0 + float(np.abs(case.finite).max(initial=0.0))
    mass = (1 + len(case.ts)) * scale * (1 + int(case.weights.max(initial=0)))
    for name, wanted in expected.items():
        bound = 0.0
        if name.endswith("m2"):
            bound = 1e-12 * mass * scale
        elif name.endswith("mean") or ("add" in name and wanted.dtype == np.float64):
            bound = 1e-12 * mass
        np.testing.assert_allclose(
            found[name], wanted, rtol=0, atol=bound, equal_nan=True, err_msg=name
        )
        assert found[name].dtype == wanted.dtype, name


# ---- random cases


def grids(most: int = 60) -> st.SearchStrategy[Grid]:
    """Grids of windows with sizes, slides and spans up to ``most``; slide may exceed size."""
    length = st.integers(1, most)
    offset = st.integers(-most, most)
    sliding = st.builds(rules.sliding_grid, length, length, offset)
    tumbling = st.builds(lambda n, o: rules.sliding_grid(n, n, o), length, offset)
    steps = st.tuples(length, st.integers(1, 12), offset)
    cumulative = steps.map(lambda s: rules.cumulative_grid(s[0] * s[1], s[0], s[2]))
    return st.one_of(sliding, tumbling, cumulative)


_INTS = st.one_of(
    st.integers(-5, 5), st.sampled_from([LONG_MIN, LONG_MAX]), st.integers(LONG_MIN, LONG_MAX)
)
_FLOATS = st.one_of(
    st.floats(-1e6, 1e6, allow_subnormal=False),
    st.sampled_from([0.0, -0.0, float("nan"), float("inf"), float("-inf")]),
)


@st.composite
def cases(draw: st.DrawFn, most_rows: int = 60) -> Case:
    """Small cases: few or many keys, near or far times, nulls, extremes of every kind."""
    grid = draw(grids())
    low, high = rules.earliest_unit(grid), rules.latest_unit(grid)
    near = st.integers(-3 * grid.size - 5, 3 * grid.size + 5)
    far = st.sampled_from([low, low - 1, low + 1, high, high + 1, high - 1, LONG_MIN, LONG_MAX])
    ts = draw(st.sampled_from([near, near, near, st.one_of(near, far)]))
    key_count = draw(st.sampled_from([1, 2, 3, 100_000]))
    row = st.tuples(
        ts, st.booleans(), st.integers(0, key_count - 1), _INTS, _FLOATS, st.integers(0, 3),
        st.booleans(),
    )  # fmt: skip
    rows = draw(st.lists(row, max_size=most_rows))
    columns = list(zip(*rows, strict=True)) or [()] * 7
    first = draw(st.integers(-2, 4))
    return Case(
        grid=grid,
        ts=np.array(columns[0], np.int64),
        present=np.array(columns[1] if draw(st.booleans()) else (), np.bool_),
        codes=np.array(columns[2], np.int64),
        key_count=key_count,
        ints=np.array(columns[3], np.int64),
        floats=np.array(columns[4], np.float64),
        weights=np.array(columns[5], np.int64),
        valid=np.array(columns[6] if draw(st.booleans()) else (), np.bool_),
        lateness=draw(st.one_of(st.integers(0, 20), st.just(LONG_MAX))),
        watermark=draw(st.one_of(st.just(LONG_MIN), near, st.just(LONG_MAX))),
        windows=(first, first + draw(st.integers(0, 200))),
    )


def random_case(
    seed: int, rows: int, keys: int, grid: Grid, *, ticks: int, key_count: int | None = None
) -> Case:
    """Return a case of many rows: ``keys`` keys spread over ``key_count`` codes, in ``ticks``."""
    random = np.random.default_rng(seed)
    count = key_count or keys
    codes = random.choice(count, keys, replace=False) if keys < count else np.arange(count)
    return Case(
        grid=grid,
        ts=random.integers(-ticks // 3, ticks - ticks // 3, rows),
        present=random.random(rows) < 0.95,
        codes=random.choice(codes, rows).astype(np.int64),
        key_count=count,
        ints=random.integers(LONG_MIN, LONG_MAX, rows, endpoint=True),
        floats=np.where(random.random(rows) < 0.01, np.nan, random.normal(0, 1e3, rows)),
        weights=random.integers(0, 3, rows),
        valid=random.random(rows) < 0.9,
        lateness=0,
        watermark=-ticks // 4,
        windows=(0, 10**9),
    )


def apart() -> Case:
    """Return a case of two rows as far apart as can be, of which only the first is wanted."""
    grid = rules.sliding_grid(2, 1, 0)
    case = random_case(0, 2, 1, grid, ticks=10)
    ts = np.array([rules.earliest_unit(grid), rules.latest_unit(grid)])
    none = np.empty(0, np.bool_)
    return replace(case, ts=ts, present=none, valid=none, watermark=LONG_MIN, windows=(-1, 5))
