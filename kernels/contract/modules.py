"""The modules of a back end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol

import numpy as np

from gpu_windows.kernels.contract.arrays import DeviceArray, DeviceInts, HostArray
from gpu_windows.kernels.contract.groups import G, Grouping, Reduce
from gpu_windows.kernels.contract.joins import Joins
from gpu_windows.kernels.contract.keys import Keys
from gpu_windows.kernels.contract.rows import Assign
from gpu_windows.kernels.contract.windows import Combine


class Memory(Protocol):
    """Where the arrays of the back end are; on CPU a device's array is the host's."""

    def to_device(self, array: HostArray) -> DeviceArray:
        """Return the array where the kernels run, contiguous; one that is there is not copied."""

    def to_host(self, array: DeviceArray) -> HostArray:
        """Return the array as NumPy's; waits for the kernels that write it."""

    def keep(self, array: DeviceArray) -> HostArray:
        """Return a result that kernels may take again, where it is until somebody looks at it.

        On CUDA it is no array of NumPy's, but behaves like one, read only: the first look copies
        it. `to_device` finds it where it is, `numpy.concatenate` of such arrays is one.
        """

    def deliver(self, array: DeviceArray, pending: list[Any] | None = None) -> HostArray:
        """Return a result for the host, which is there when somebody looks at it.

        The first look at one brings all that were delivered with the same list, in one copy if they
        are small: so a call that delivers all its results before it looks waits once.

        Parameters
        ----------
        array : array of the back end
        pending : list, optional
            What is delivered and was not looked at. Default: nothing else.
        """

    def borrow(self, array: DeviceArray) -> HostArray:
        """Return an array of somebody else's as `keep` does; `release` leaves it where it is.

        Nobody may change it, and its memory is not ours to give back. It is copied to where the
        back end's arrays are, if it is elsewhere.
        """

    def upload(self, array: HostArray) -> HostArray:
        """Return an array as `keep` does, which `to_device` finds; the host keeps its own.

        On CUDA the host does not wait for it. What is looked at is the array of the host, which
        nobody may change, and `release` drops the copy.
        """

    def release(self) -> bool:
        """Move all that is kept to the host, to make room; return whether there was any.

        What was uploaded is there already.
        """

    def take(self, values: DeviceArray, index: DeviceInts) -> DeviceArray:
        """Return ``values[index]``, int64[n] within bounds."""

    def empty(self, count: int, dtype: type[np.generic]) -> DeviceArray:
        """Allocate ``count`` values of a dtype, undefined."""


@dataclass(frozen=True)
class Modules(Generic[G]):
    """The modules of a back end."""

    keys: Keys
    assign: Assign
    grouping: Grouping[G]
    reduce: Reduce[G]
    combine: Combine
    joins: Joins
    memory: Memory
