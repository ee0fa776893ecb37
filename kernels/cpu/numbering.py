"""Number the rows of every key."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.compile import kernel
from gpu_windows.kernels.cpu.types import INTS, OUT_INTS


def number(
    codes: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """See `contract.rows.Numbering.number`."""
    numbers, counts = np.empty(len(codes), np.int64), counts.copy()
    _number(codes, counts, numbers)
    return numbers, counts


@kernel((INTS, OUT_INTS, OUT_INTS))
def _number(codes: Any, counts: Any, numbers: Any) -> None:
    for i in range(codes.size):
        numbers[i] = counts[codes[i]]
        counts[codes[i]] += 1
