"""Memory of the CUDA back end: the device's."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import DeviceArray, DeviceInts, HostArray
from gpu_windows.kernels.cuda import primitives, resident
from gpu_windows.kernels.cuda.resident import Delivered, Resident, Uploaded


def to_device(array: HostArray) -> DeviceArray:
    """See `contract.modules.Memory.to_device`."""
    if isinstance(array, Resident):
        there = array.on_device  # it may leave at any time
        if there is not None:
            return there
        array = array.on_host
    return primitives.to_device(array)


def to_host(array: DeviceArray) -> HostArray:
    """See `contract.modules.Memory.to_host`."""
    return array.on_host if isinstance(array, Resident) else primitives.to_host(array)


def keep(array: DeviceArray) -> HostArray:
    """See `contract.modules.Memory.keep`."""
    resident: Any = Resident(array)
    return resident  # type: ignore[no-any-return]


def deliver(array: DeviceArray, pending: list[Any] | None = None) -> HostArray:
    """See `contract.modules.Memory.deliver`."""
    delivered: Any = Delivered(array, [] if pending is None else pending)
    return delivered  # type: ignore[no-any-return]


def borrow(array: DeviceArray) -> HostArray:
    """See `contract.modules.Memory.borrow`."""
    borrowed: Any = Resident(primitives.to_device(array), is_owned=False)
    return borrowed  # type: ignore[no-any-return]


def upload(array: HostArray) -> HostArray:
    """See `contract.modules.Memory.upload`."""
    uploaded: Any = Uploaded(array)
    return uploaded  # type: ignore[no-any-return]


def release() -> bool:
    """See `contract.modules.Memory.release`."""
    return resident.release()


def empty(count: int, dtype: type[np.generic]) -> DeviceArray:
    """See `contract.modules.Memory.empty`."""
    return primitives.empty(count, dtype)


def take(values: DeviceArray, index: DeviceInts) -> DeviceArray:
    """See `contract.modules.Memory.take`."""
    return primitives.gather(values, index)
