"""Segmented reduce: one primitive partial per group of rows, combined in order of the rows.

In every kernel ``cells`` (int32[n]) is the cell of each row, ``valid`` (bool[n], or empty for
all) says which rows take part, and ``out`` is indexed by cell and starts as the identity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.argument_types import (
    BOOLS,
    FLOATS,
    INT,
    INTS,
    INTS32,
    OUT_FLOATS,
    OUT_INTS,
)
from gpu_windows.kernels.compile import kernel
from gpu_windows.kernels.cpu import rules
from gpu_windows.kernels.cpu.grouping import Groups
from gpu_windows.kernels.cpu.moments import moments, moments_of
from gpu_windows.rules import IDENTITIES

__all__ = ["ALL", "count", "exact_sum", "moments", "moments_of", "pick", "reduce"]

ALL: NDArray[np.bool_] = np.empty(0, np.bool_)


@kernel(
    (INT, INTS32, INTS, BOOLS, OUT_INTS),
    (INT, INTS32, FLOATS, BOOLS, OUT_FLOATS),
)
def _reduce(how: Any, cells: Any, values: Any, valid: Any, out: Any) -> None:
    if valid.size == 0:
        for i in range(cells.size):
            out[cells[i]] = rules.fold(how, out[cells[i]], values[i])
    else:
        for i in range(cells.size):
            if valid[i]:
                out[cells[i]] = rules.fold(how, out[cells[i]], values[i])


@kernel((INTS32, INTS, BOOLS, OUT_INTS, OUT_INTS))
def _exact_sum(cells: Any, values: Any, valid: Any, high: Any, low: Any) -> None:
    for i in range(cells.size):
        if valid.size == 0 or valid[i]:
            c = cells[i]
            high[c] += rules.high_half(values[i])
            low[c] += rules.low_half(values[i])


@kernel((INTS32, BOOLS, OUT_INTS))
def _count(cells: Any, valid: Any, out: Any) -> None:
    for i in range(cells.size):
        if valid[i]:
            out[cells[i]] += 1


@kernel((INTS32, INTS, BOOLS, OUT_INTS))
def _pick(cells: Any, rank: Any, valid: Any, out: Any) -> None:
    for i in range(cells.size):
        if valid.size == 0 or valid[i]:
            best = out[cells[i]]
            if best < 0 or rank[i] < rank[best]:
                out[cells[i]] = i


def count(groups: Groups, valid: NDArray[np.bool_]) -> NDArray[np.int64]:
    """See `contract.groups.Reduce.count`."""
    if len(valid) == 0:
        return groups.rows  # type: ignore[no-any-return]
    out = np.zeros(groups.size, np.int64)
    _count(groups.cells, valid, out)
    return groups.take(out)


def reduce(
    how: int, groups: Groups, values: NDArray[Any], valid: NDArray[np.bool_]
) -> NDArray[Any]:
    """See `contract.groups.Reduce.reduce`."""
    out = np.full(groups.size, IDENTITIES[how, values.dtype.name], values.dtype)
    _reduce(how, groups.cells, values, valid, out)
    return groups.take(out)


def exact_sum(
    groups: Groups, values: NDArray[np.int64], valid: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """See `contract.groups.Reduce.exact_sum`."""
    high, low = (np.zeros(groups.size, np.int64) for _ in range(2))
    _exact_sum(groups.cells, values, valid, high, low)
    return groups.take(high), groups.take(low)


def pick(groups: Groups, rank: NDArray[np.int64], valid: NDArray[np.bool_]) -> NDArray[np.int64]:
    """See `contract.groups.Reduce.pick`."""
    out = np.full(groups.size, -1, np.int64)
    _pick(groups.cells, rank, valid, out)
    return groups.take(out)
