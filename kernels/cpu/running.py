"""Running aggregates: every entry of a run combined with the entries of the run before it.

``begins`` (int64[r], ascending) has the first entry of every run; the last run ends with the
entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.compile import kernel
from gpu_windows.kernels.cpu import rules
from gpu_windows.kernels.cpu.moments import Moments, empty_moments, follows, whole
from gpu_windows.kernels.cpu.types import BOOLS, FLOATS, INT, INTS, OUT_FLOATS, OUT_INTS

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def fold(how: int, begins: Ints, values: NDArray[Any]) -> NDArray[Any]:
    """Fold int64[m] or float64[m] by ADD, MIN or MAX (`gpu_windows.rules`)."""
    out = np.empty_like(values)
    _fold(how, begins, values, out)
    return out


def moments(begins: Ints, n: Ints, *parts: Floats) -> Moments:
    """Combine moments, [m] each."""
    out = empty_moments(len(n))
    _moments(begins, n, *parts, *out)
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


@kernel((INT, INTS, INTS, OUT_INTS), (INT, INTS, FLOATS, OUT_FLOATS))
def _fold(how: Any, begins: Any, values: Any, out: Any) -> None:
    for run in range(begins.size):
        end = begins[run + 1] if run + 1 < begins.size else values.size
        out[begins[run]] = values[begins[run]]
        for i in range(begins[run] + 1, end):
            out[i] = rules.fold(how, out[i - 1], values[i])


@kernel((INTS, *[INTS, FLOATS, FLOATS, FLOATS], *[OUT_INTS, OUT_FLOATS, OUT_FLOATS, OUT_FLOATS]))
def _moments(
    begins: Any, n: Any, high: Any, low: Any, m2: Any,
    out_n: Any, out_high: Any, out_low: Any, out_m2: Any,
) -> None:  # fmt: skip
    for run in range(begins.size):
        end = begins[run + 1] if run + 1 < begins.size else n.size
        count, shift, mean, squares, rest = 0, 0.0, 0.0, 0.0, 0.0
        for i in range(begins[run], end):
            if count == 0:
                shift = high[i]
            apart = (high[i] - shift) + low[i]
            count, mean, more = rules.moments(count, mean, 0.0, n[i], apart, m2[i])
            squares, off = rules.two_sum(squares, more)
            rest += off
            out_n[i], out_m2[i] = count, whole(squares, rest)
            out_high[i], out_low[i] = rules.two_sum(shift, mean)
            if follows(count - n[i], count):
                shift, mean = out_high[i], out_low[i]


@kernel((INTS, INTS, BOOLS, OUT_INTS))
def _pick(begins: Any, rank: Any, valid: Any, out: Any) -> None:
    for run in range(begins.size):
        end = begins[run + 1] if run + 1 < begins.size else rank.size
        best = -1
        for i in range(begins[run], end):
            if valid[i] and (best < 0 or rank[i] < rank[best]):
                best = i
            out[i] = best
