"""Running combinations: every entry of a run with those before it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.compile import kernel
from gpu_windows.kernels.cpu import rules
from gpu_windows.kernels.cpu.types import BOOLS, FLOATS, INT, INTS, OUT_FLOATS, OUT_INTS

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def fold(how: int, begins: Ints, values: NDArray[Any]) -> NDArray[Any]:
    """See `contract.groups.Running.fold`."""
    out = np.empty_like(values)
    _fold(how, begins, values, out)
    return out


def moments(begins: Ints, n: Ints, mean: Floats, m2: Floats) -> tuple[Ints, Floats, Floats]:
    """See `contract.groups.Running.moments`."""
    out = np.empty_like(n), np.empty_like(mean), np.empty_like(m2)
    _moments(begins, n, mean, m2, *out)
    return out


def pick(begins: Ints, rank: Ints, valid: NDArray[np.bool_]) -> Ints:
    """See `contract.groups.Running.pick`."""
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


@kernel((INTS, INTS, FLOATS, FLOATS, OUT_INTS, OUT_FLOATS, OUT_FLOATS))
def _moments(begins: Any, n: Any, mean: Any, m2: Any, ns: Any, means: Any, m2s: Any) -> None:
    for run in range(begins.size):
        end = begins[run + 1] if run + 1 < begins.size else n.size
        first = begins[run]
        ns[first], means[first], m2s[first] = n[first], mean[first], m2[first]
        for i in range(first + 1, end):
            ns[i], means[i], m2s[i] = rules.moments(
                ns[i - 1], means[i - 1], m2s[i - 1], n[i], mean[i], m2[i]
            )


@kernel((INTS, INTS, BOOLS, OUT_INTS))
def _pick(begins: Any, rank: Any, valid: Any, out: Any) -> None:
    for run in range(begins.size):
        end = begins[run + 1] if run + 1 < begins.size else rank.size
        best = -1
        for i in range(begins[run], end):
            if valid[i] and (best < 0 or rank[i] < rank[best]):
                best = i
            out[i] = best
