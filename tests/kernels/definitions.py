"""What the kernels compute, in plain Python and from the definition of windows, not of slices."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_windows import rules
from gpu_windows.rules import LONG_MAX, LONG_MIN, Grid
from tests.kernels.cases import UNITS, Case, Results, window_range

Pair = tuple[int, int]


def slice_number(ts: int, grid: Grid) -> int:
    """Count the cuts between offset and ``ts``: at every window start and every window end."""
    shifted = ts - grid.offset
    starts = shifted // grid.slide
    if grid.steps or grid.size % grid.slide == 0:
        return starts
    return starts + (shifted - grid.size % grid.slide) // grid.slide + 1


def windows_of(ts: int, grid: Grid) -> range:
    """Return the numbers of the windows that hold ``ts``."""
    shifted = ts - grid.offset
    if grid.steps:
        first = shifted // grid.slide
        return range(first, (first // grid.steps + 1) * grid.steps)
    return range((shifted - grid.size) // grid.slide + 1, shifted // grid.slide + 1)


def bounds_of(number: int, grid: Grid) -> Pair:
    """Return start and end of a window."""
    if grid.steps:
        block, step = divmod(number, grid.steps)
        start = grid.offset + block * grid.steps * grid.slide
        return start, start + (step + 1) * grid.slide
    start = grid.offset + number * grid.slide
    return start, start + grid.size


def status(ts: int, case: Case) -> int:
    """Return what becomes of a row with a timestamp."""
    if not case.range[0] <= ts <= case.range[1]:
        return rules.OUT_OF_RANGE
    numbers = windows_of(ts, case.grid)
    last = bounds_of(numbers[-1], case.grid)[1] - 1 if numbers else ts
    if min(last + case.lateness, LONG_MAX) <= case.watermark:
        return rules.LATE
    return rules.ACCEPTED if numbers else rules.GAP


#: The first tick of each unit; equal ones but the last are of empty units.
_STARTS = [int(rules.tick_of(n, UNITS)) for n in range(UNITS.first, UNITS.last + 1)]


def unit(ts: int) -> int:
    """Return the last unit that begins up to a tick, within the table."""
    return UNITS.first + bisect_right(_STARTS, min(max(ts, _STARTS[0]), _STARTS[-1] - 1)) - 1


@dataclass
class Row:
    """An accepted row."""

    place: int
    ts: int
    value: int
    real: float
    n: int
    finite: float
    valid: bool


def evaluate(case: Case) -> Results:
    """Return what `tests.kernels.cases.evaluate` must return."""
    states, slices = _assign(case)
    groups: dict[Pair, list[Row]] = {}
    place = 0
    for i, state in enumerate(states):
        if state == rules.ACCEPTED:
            row = Row(
                place, int(case.ts[i]), int(case.ints[i]), float(case.floats[i]),
                int(case.weights[i]), float(case.finite[i]),
                bool(case.valid[i]) if len(case.valid) else True,
            )  # fmt: skip
            groups.setdefault((int(case.codes[i]), slices[i]), []).append(row)
            place += 1
    entries = sorted(groups)
    rows = [groups[pair] for pair in entries]
    found: Results = {"slices": np.array(slices, np.int64), "status": np.array(states, np.int8)}
    found["units"] = _ints(map(unit, case.ts.tolist()))
    found |= {f"group {name}": part for name, part in _groups(entries, rows).items()}
    found |= {f"session {name}": part for name, part in _sessions(case).items()}
    codes = case.codes.tolist()
    found["numbers"] = _ints(codes[:i].count(code) for i, code in enumerate(codes))
    found["counts"] = _ints(map(codes.count, range(case.keys)))
    return found | {f"window {name}": part for name, part in _windows(case, entries, rows).items()}


def _sessions(case: Case) -> Results:
    """Add one row after the other; merge it with every session that it touches."""
    sessions: list[tuple[int, int, int, int]] = []  # code, start, end, rows
    for code, start, end in zip(
        *(a.tolist() for a in (case.codes, case.ts, case.ends)), strict=True
    ):
        touched = [s for s in sessions if s[0] == code and s[1] <= end and s[2] >= start]
        sessions = [s for s in sessions if s not in touched]
        whole = [(code, start, end, 1), *touched]
        sessions.append(
            (code, min(s[1] for s in whole), max(s[2] for s in whole), sum(s[3] for s in whole))
        )
    names = ("codes", "starts", "ends", "rows")
    return {name: _ints(s[i] for s in sorted(sessions)) for i, name in enumerate(names)}


def _assign(case: Case) -> tuple[list[int], list[int]]:
    states, slices = [], []
    for i, ts in enumerate(case.ts.tolist()):
        present = len(case.present) == 0 or bool(case.present[i])
        states.append(status(ts, case) if present else rules.NULL)
        placed = states[-1] in (rules.ACCEPTED, rules.LATE, rules.GAP)
        slices.append(slice_number(ts, case.grid) if placed else 0)
    return states, slices


# ---- partials of rows


def add_ints(values: Iterable[int]) -> int:
    """Add modulo 2**64."""
    return (sum(values) - LONG_MIN) % 2**64 + LONG_MIN


def add_floats(values: Iterable[float]) -> float:
    """Add one after the other."""
    total = 0.0
    for value in values:
        total += value
    return total


def least_float(values: Iterable[float]) -> float:
    """Return the least; NaN is larger than any number."""
    return min((v for v in values if not math.isnan(v)), default=math.nan)


def greatest_float(values: Sequence[float]) -> float:
    """Return the greatest; NaN is larger than any number."""
    return math.nan if any(map(math.isnan, values)) else max(values, default=-math.inf)


def moments(parts: Sequence[tuple[int, float, float]]) -> tuple[int, float, float]:
    """Return count, mean and sum of squared deviations, given those of parts."""
    n = sum(part[0] for part in parts)
    if n == 0:
        return 0, 0.0, 0.0
    mean = math.fsum(part[0] * part[1] for part in parts) / n
    m2 = math.fsum(part[2] + part[0] * (part[1] - mean) ** 2 for part in parts if part[0])
    return n, mean, m2


FOLDS: dict[str, tuple[Callable[[list[Any]], Any], str]] = {
    "add ints": (add_ints, "value"),
    "least ints": (lambda values: min(values, default=LONG_MAX), "value"),
    "greatest ints": (lambda values: max(values, default=LONG_MIN), "value"),
    "add floats": (add_floats, "real"),
    "least floats": (least_float, "real"),
    "greatest floats": (greatest_float, "real"),
}


def _groups(entries: Sequence[Pair], groups: Sequence[list[Row]]) -> Results:
    made = {
        "codes": _ints(code for code, _ in entries),
        "slices": _ints(slice_ for _, slice_ in entries),
        "rows": _ints(map(len, groups)),
        "count all": _ints(map(len, groups)),
        "count": _ints(sum(row.valid for row in rows) for rows in groups),
    }
    for name, (fold, field) in FOLDS.items():
        dtype = np.int64 if field == "value" else np.float64
        verb, lane = name.split()
        some = [fold([getattr(r, field) for r in rows if r.valid]) for rows in groups]
        all_ = [fold([getattr(r, field) for r in rows]) for rows in groups]
        made |= {name: np.array(some, dtype), f"{verb} all {lane}": np.array(all_, dtype)}
    for name, wanted in (("", (True,)), (" all", (True, False))):
        values = [[row.value for row in rows if row.valid in wanted] for rows in groups]
        made[f"high{name}"] = _ints(sum(divmod(v, 2**32)[0] for v in some) for some in values)
        made[f"low{name}"] = _ints(sum(divmod(v, 2**32)[1] for v in some) for some in values)
        reals = [[(1, row.finite, 0.0) for row in rows if row.valid in wanted] for rows in groups]
        of_values = _moments(reals)
        made |= {f"n of{name}": of_values["n"]}
        made |= {f"of{name} {part}": of_values[part] for part in ("mean", "m2")}
    weights = _moments([[(1, float(r.n), 0.0) for r in rows if r.valid] for rows in groups])
    made |= {"n of weights": weights["n"]}
    made |= {f"of weights {part}": weights[part] for part in ("mean", "m2")}
    made |= _moments([[(r.n, r.finite, float(r.n)) for r in rows] for rows in groups])
    made["pick"] = _ints(_pick([r for r in rows if r.valid]) for rows in groups)
    made["pick all"] = _ints(_pick(rows) for rows in groups)
    return made


def _pick(rows: Sequence[Row]) -> int:
    return min(rows, key=lambda row: (row.value, row.place)).place if rows else -1


def _moments(groups: Sequence[Sequence[tuple[int, float, float]]]) -> Results:
    made = [moments(parts) for parts in groups]
    dtypes = {"n": np.int64, "mean": np.float64, "m2": np.float64}
    return {
        name: np.array([part[i] for part in made], dtype)
        for i, (name, dtype) in enumerate(dtypes.items())
    }


def _ints(values: Iterable[int]) -> Any:
    return np.array(list(values), np.int64)


# ---- windows of groups


def _windows(case: Case, entries: Sequence[Pair], groups: Sequence[list[Row]]) -> Results:
    low, high = window_range(case, _ints(slice_ for _, slice_ in entries))
    inside: dict[Pair, list[int]] = {}
    for e, ((code, _), rows) in enumerate(zip(entries, groups, strict=True)):
        for number in windows_of(rows[0].ts, case.grid):
            if low <= number <= high:
                inside.setdefault((code, number), []).append(e)
    order = sorted(inside, key=lambda window: (inside[window][-1], window[1]))
    members = [inside[window] for window in order]

    def first_in_slices(entry: int, before: int) -> int:
        """Return the first entry of a key up to one after some slice; -1 if there is none."""
        after, found = entry + 1, -1
        while after > 0 and entries[after - 1] > (entries[entry][0], before):
            after -= 1
            found = after
        return found

    def last_slice(number: int) -> int:
        return slice_number(bounds_of(number, case.grid)[1] - 1, case.grid)

    bounds = [bounds_of(number, case.grid) for _, number in order]
    made = {
        "total": _ints([len(order)]),
        "numbers": _ints(number for _, number in order),
        "first": _ints(found[0] for found in members),
        "last": _ints(found[-1] for found in members),
        "starts": _ints(start for start, _ in bounds),
        "ends": _ints(end for _, end in bounds),
    }
    for length in () if case.grid.steps else (1, 3):
        firsts = [
            first_in_slices(members[at][-1], last_slice(order[at][1]) - length)
            for at in range(len(order))
        ]
        made[f"some in {length} slices"] = np.array([first >= 0 for first in firsts], np.bool_)
        made[f"first of {length} slices"] = _ints(
            found[-1] if first < 0 else first for first, found in zip(firsts, members, strict=True)
        )
    held = [[row for e in found for row in groups[e]] for found in members]
    for name, (fold, field) in FOLDS.items():
        dtype = np.int64 if field == "value" else np.float64
        values = [fold([getattr(r, field) for r in some if r.valid]) for some in held]
        made[name] = np.array(values, dtype)
    made |= _moments([[(r.n, r.finite, float(r.n)) for r in some] for some in held])
    least = [min((r.value for r in some if r.valid), default=LONG_MAX) for some in groups]
    made["pick"] = _ints(min(found, key=lambda e: (least[e], e)) for found in members)
    for name in ("numbers", "add ints", "pick"):
        made[f"{name} from the last"] = made[name][::-1]
    return made
