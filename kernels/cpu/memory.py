"""Memory of the CPU back end: NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def to_device(array: NDArray[Any]) -> NDArray[Any]:
    """See `contract.modules.Memory.to_device`."""
    return np.ascontiguousarray(array)


def to_host(array: NDArray[Any]) -> NDArray[Any]:
    """See `contract.modules.Memory.to_host`."""
    return array


def keep(array: NDArray[Any]) -> NDArray[Any]:
    """See `contract.modules.Memory.keep`."""
    return array


def deliver(array: NDArray[Any], pending: list[Any] | None = None) -> NDArray[Any]:
    """See `contract.modules.Memory.deliver`."""
    del pending
    return array


def borrow(array: NDArray[Any]) -> NDArray[Any]:
    """See `contract.modules.Memory.borrow`."""
    return array


def upload(array: NDArray[Any]) -> NDArray[Any]:
    """See `contract.modules.Memory.upload`."""
    return np.asarray(array)


def release() -> bool:
    """See `contract.modules.Memory.release`."""
    return False


def take(values: NDArray[Any], index: NDArray[np.int64]) -> NDArray[Any]:
    """See `contract.modules.Memory.take`."""
    found: NDArray[Any] = values[index]
    return found


def empty(count: int, dtype: type[np.generic]) -> NDArray[Any]:
    """See `contract.modules.Memory.empty`."""
    return np.empty(count, dtype)
