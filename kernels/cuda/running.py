"""Running combinations, a thread a run: every entry of a run with those before it.

In every kernel ``begins`` (int64[r]) says where the runs begin; the last one ends with the
entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.cuda import primitives, rules
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.types import BOOLS, FLOATS, INT, INTS


def fold(how: int, begins: Any, values: Any) -> Any:
    """Fold int64[n] or float64[n] by ADD, LEAST or GREATEST (`gpu_windows.rules`)."""
    out = primitives.empty(len(values), values.dtype)
    _fold(len(begins), how, begins, values, out)
    return out


def moments(begins: Any, n: Any, mean: Any, m2: Any) -> tuple[Any, Any, Any]:
    """Combine (count, mean, sum of squared deviations)."""
    ns, means, m2s = (primitives.empty(len(n), part.dtype) for part in (n, mean, m2))
    _moments(len(begins), begins, n, mean, m2, ns, means, m2s)
    return ns, means, m2s


def pick(begins: Any, rank: Any, valid: Any) -> Any:
    """Return the valid entry of least rank so far, the earlier of equals; -1 if there is none."""
    out = primitives.empty(len(rank), np.int64)
    _pick(len(begins), begins, rank, valid, out)
    return out


@kernel((INT, INTS, INTS, INTS), (INT, INTS, FLOATS, FLOATS))
def _fold(how: Any, begins: Any, values: Any, out: Any) -> None:
    for run in range(cuda.grid(1), begins.size, cuda.gridsize(1)):
        end = begins[run + 1] if run + 1 < begins.size else values.size
        total = values[begins[run]]
        out[begins[run]] = total
        for i in range(begins[run] + 1, end):
            total = rules.fold(how, total, values[i])
            out[i] = total


@kernel((INTS, INTS, FLOATS, FLOATS, INTS, FLOATS, FLOATS))
def _moments(begins: Any, n: Any, mean: Any, m2: Any, ns: Any, means: Any, m2s: Any) -> None:
    for run in range(cuda.grid(1), begins.size, cuda.gridsize(1)):
        end = begins[run + 1] if run + 1 < begins.size else n.size
        total_n, total_mean, total_m2 = 0, 0.0, 0.0
        for i in range(begins[run], end):
            total_n, total_mean, total_m2 = rules.moments(
                total_n, total_mean, total_m2, n[i], mean[i], m2[i]
            )
            ns[i], means[i], m2s[i] = total_n, total_mean, total_m2


@kernel((INTS, INTS, BOOLS, INTS))
def _pick(begins: Any, rank: Any, valid: Any, out: Any) -> None:
    for run in range(cuda.grid(1), begins.size, cuda.gridsize(1)):
        end = begins[run + 1] if run + 1 < begins.size else rank.size
        best = -1
        for i in range(begins[run], end):
            if valid[i] and (best < 0 or rank[i] < rank[best]):
                best = i
            out[i] = best
