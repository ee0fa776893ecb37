"""Running aggregates: every entry of a run combined with the entries of the run before it.

The scans of `gpu_windows.kernels.cpu.combine` are these, of blocks and from both ends.
``begins`` (int64[r], ascending) has the first entry of every run; the last run ends with the
entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.argument_types import BOOLS, FLOATS, INT, INTS, OUT_FLOATS, OUT_INTS
from gpu_windows.kernels.compile import inner, kernel, specialize
from gpu_windows.kernels.cpu import rules
from gpu_windows.kernels.cpu.moments import Moments, empty_moments, follows, whole

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: How two partials are combined: a kernel of `_scan` has its own in this place.
merge: Any = None


def _scan(parameter: Any, backwards: Any, same: Any, values: Any, out: Any) -> None:
    """Combine entries with those before them, or after them; ``same``: with the one before."""
    if backwards:
        for d in range(1, same.size + 1):
            e = same.size - d
            out[e] = values[e]
            if d > 1 and same[e + 1]:
                out[e] = merge(parameter, values[e], out[e + 1])
    else:
        for e in range(same.size):
            out[e] = values[e]
            if same[e]:
                out[e] = merge(parameter, out[e - 1], values[e])


@inner(inline="always")
def choose_better(rank: Any, left: Any, right: Any) -> Any:
    """Return the entry of lesser rank, the earlier of equals."""
    return rules.better(left, rank[left], right, rank[right])


scan_fold = kernel(
    (INT, INT, BOOLS, INTS, OUT_INTS),
    (INT, INT, BOOLS, FLOATS, OUT_FLOATS),
)(specialize(_scan, "scan_fold", merge=rules.fold))
scan_pick = kernel((INTS, INT, BOOLS, INTS, OUT_INTS))(
    specialize(_scan, "scan_pick", merge=choose_better)
)


@kernel((INT, BOOLS, INTS, FLOATS, FLOATS, FLOATS, OUT_INTS, *[OUT_FLOATS] * 3))
def scan_moments(
    backwards: Any, same: Any, n: Any, high: Any, low: Any, m2: Any,
    out_n: Any, out_high: Any, out_low: Any, out_m2: Any,
) -> None:  # fmt: skip
    """Combine moments as `_scan` does what is one number."""
    count, shift, mean, squares, rest = 0, 0.0, 0.0, 0.0, 0.0
    for d in range(same.size):
        e = same.size - 1 - d if backwards else d
        if d == 0 or not same[e + 1 if backwards else e]:
            count, squares, rest = 0, 0.0, 0.0
        if count == 0:
            shift = high[e]
        apart = (high[e] - shift) + low[e]
        count, mean, more = rules.moments(count, mean, 0.0, n[e], apart, m2[e])
        squares, off = rules.two_sum(squares, more)
        rest += off
        out_n[e], out_m2[e] = count, whole(squares, rest)
        out_high[e], out_low[e] = rules.two_sum(shift, mean)
        if follows(count - n[e], count):
            shift, mean = out_high[e], out_low[e]


def fold(how: int, begins: Ints, values: NDArray[Any]) -> NDArray[Any]:
    """Fold int64[m] or float64[m] by ADD, MIN or MAX (`gpu_windows.rules`)."""
    out = np.empty_like(values)
    scan_fold(how, 0, _mark_followers(begins, len(values)), values, out)
    return out


def moments(begins: Ints, n: Ints, *parts: Floats) -> Moments:
    """Combine moments, [m] each."""
    out = empty_moments(len(n))
    scan_moments(0, _mark_followers(begins, len(n)), n, *parts, *out)
    return out


def pick(begins: Ints, rank: Ints, valid: NDArray[np.bool_]) -> Ints:
    """Return the valid entry of least rank so far, the earlier of equals.

    Parameters
    ----------
    begins : int64[r]
    rank : int64[m]
    valid : bool[m]
        Which entries may be picked.

    Returns
    -------
    int64[m]
        -1 where no entry so far is valid.
    """
    out = np.empty_like(rank)
    _pick(begins, rank, valid, out)
    return out


def _mark_followers(begins: Ints, count: int) -> NDArray[np.bool_]:
    """Return which of ``count`` entries are in the run of the one before."""
    same = np.ones(count, np.bool_)
    same[begins] = False
    return same


@kernel((INTS, INTS, BOOLS, OUT_INTS))
def _pick(begins: Any, rank: Any, valid: Any, out: Any) -> None:
    for run in range(begins.size):
        end = begins[run + 1] if run + 1 < begins.size else rank.size
        best = -1
        for i in range(begins[run], end):
            if valid[i] and (best < 0 or rank[i] < rank[best]):
                best = i
            out[i] = best
