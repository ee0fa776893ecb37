"""The CUDA back end works in the memory of a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.contract.arrays import DeviceArray, DeviceInts, HostArray
from gpu_windows.kernels.cuda import primitives, resident
from gpu_windows.kernels.cuda.resident import Delivered, Resident, Uploaded


class CudaBackend(Backend):
    """A back end whose kernels run on a device."""

    def _move(self, array: HostArray) -> DeviceArray:
        if isinstance(array, Resident):
            there = array.on_device  # it may leave at any time
            if there is not None:
                return there
            array = array.on_host
        return primitives.to_device(array)

    def to_host(self, array: DeviceArray) -> HostArray:
        """See `Backend.to_host`."""
        return array.on_host if isinstance(array, Resident) else primitives.to_host(array)

    def keep(self, array: DeviceArray) -> HostArray:
        """See `Backend.keep`."""
        resident: Any = Resident(array)
        return resident  # type: ignore[no-any-return]

    def deliver(self, array: DeviceArray) -> HostArray:
        """See `Backend.deliver`."""
        delivered: Any = Delivered(array, [] if self.pending is None else self.pending)
        return delivered  # type: ignore[no-any-return]

    def borrow(self, array: DeviceArray) -> HostArray:
        """See `Backend.borrow`."""
        borrowed: Any = Resident(primitives.to_device(array), is_owned=False)
        return borrowed  # type: ignore[no-any-return]

    def upload(self, array: HostArray) -> HostArray:
        """See `Backend.upload`."""
        uploaded: Any = Uploaded(array)
        return uploaded  # type: ignore[no-any-return]

    def release(self) -> bool:
        """See `Backend.release`."""
        return resident.release()

    def take(self, values: DeviceArray, index: DeviceInts) -> DeviceArray:
        """See `Backend.take`."""
        return primitives.gather(values, index)

    def empty(self, count: int, dtype: type[np.generic]) -> DeviceArray:
        """See `Backend.empty`."""
        return primitives.empty(count, dtype)
