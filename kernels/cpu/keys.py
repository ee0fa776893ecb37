"""Distinct keys: the dictionary of `gpu_windows.kernels.cpu.encode`, for a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.cpu.encode import Encoder

Ints = NDArray[np.int64]


def codes(values: Ints, valid: NDArray[np.bool_], encode: Callable[[Ints], Ints]) -> Ints:
    """See `contract.keys.Keys.codes`."""
    encoder = Encoder()
    if len(valid) == 0:
        places = encoder.encode(values)
        return encode(encoder.values)[places]
    found = encoder.encode(values[valid])
    places = np.full(len(values), encoder.count)
    places[valid] = found
    return encode(encoder.values)[places]


def bits(values: NDArray[np.float64]) -> Ints:
    """See `contract.keys.Keys.bits`."""
    return np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)


def pairs(left: Ints, right: Ints, count: int) -> Ints:
    """See `contract.keys.Keys.pairs`."""
    return left * count + right


def texts(column: Any, encode: Callable[[Any], Ints]) -> Ints | None:
    """See `contract.keys.Keys.texts`."""
    del column, encode
    return None
