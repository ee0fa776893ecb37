"""Arrays that stay on the device: NumPy's to whoever looks at them, nobody's trip to kernels.

A result that kernels may take again is kept there. It is copied to the host when its values are
asked for, once, and given to kernels as it is. Where memory runs out, all that is kept is moved to
the host first (`release`): so what is kept never makes a batch fail that would have fitted.

So windows of counts, sums, extremes and moments on tables and batch DataFrames make no round trip
once keys are known: columns go up, those of the next batch while kernels work at this one
(`gpu_windows.operators.uploads`), kernels turn a batch into entries, results come down
(``docs/traffic.md``). Of a join only the row numbers of pairs come down. Picked rows (`first`,
`arg_min`) are ranked on the host. State of streams is in files, so it leaves the device in every
micro-batch.
"""

from __future__ import annotations

from threading import RLock
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from gpu_windows.errors import DeviceMemoryError
from gpu_windows.kernels.contract.arrays import DeviceArray, HostArray
from gpu_windows.kernels.cuda import primitives
from gpu_windows.kernels.cuda.session import working
from gpu_windows.kernels.cuda.staging import Upload
from gpu_windows.kernels.lazy_array import LazyArray, Pieces


class Resident(LazyArray):
    """A one-dimensional array on the device that behaves like NumPy's copy of it.

    Concatenating residents gives a resident; whatever else is done to one, is done to the copy.

    Parameters
    ----------
    array : device array
        Nobody may change it.
    is_owned : bool
        Whether its memory is given back when nobody holds it here: `release` moves it then.
    """

    def __init__(self, array: DeviceArray, *, is_owned: bool = True) -> None:
        self._array: DeviceArray | None = array
        self._copy: HostArray | None = None
        self.dtype, self.size, self.nbytes = array.dtype, array.size, array.nbytes
        if is_owned:
            with _LOCK:
                _residents[id(self)] = self

    @property
    def on_device(self) -> DeviceArray | None:
        """The array, if it is still on the device."""
        return self._array

    @property
    def on_host(self) -> HostArray:
        """NumPy's copy."""
        with _LOCK:
            if self._copy is None:
                self._copy = primitives.to_host(self._array)
            return self._copy

    def leave(self) -> None:
        """Leave the device."""
        with _LOCK:
            self._copy, self._array = self.on_host, None

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        if function is np.concatenate and not keywords:
            array = _concat(*arguments)
            if array is not None:
                return Resident(array)
        return super().__array_function__(function, types, arguments, keywords)


class Uploaded(Resident):
    """A copy on the device of an array of the host, or one that is on its way there.

    Whoever looks at it sees the host's.

    Parameters
    ----------
    source : numpy.ndarray or Pieces
        One-dimensional. Nobody may change it.
    """

    def __init__(self, source: HostArray | Pieces) -> None:
        self._source = source
        self._upload: Upload | None = primitives.upload(source)
        super().__init__(self._upload.array)

    @property
    def on_device(self) -> DeviceArray | None:
        """The array, if it is still on the device; kernels wait for it from now on."""
        with _LOCK:
            return None if self._upload is None else self._upload.land()

    @property
    def on_host(self) -> HostArray:
        """The array of the host."""
        return np.asarray(self._source)

    def leave(self) -> None:
        """Leave the device."""
        with _LOCK:
            self._array = self._upload = None


class Delivered(LazyArray):
    """A result on the device for the host, where it is when somebody looks at it.

    Parameters
    ----------
    array : device array
        Nobody may change it.
    pending : list of Delivered
        Those that come with the first look at one of them.
    """

    def __init__(self, array: DeviceArray, pending: list[Delivered]) -> None:
        self._array, self._pending = array, pending
        self._copy: HostArray | None = None
        self.dtype, self.size, self.nbytes = array.dtype, array.size, array.nbytes
        pending.append(self)

    @property
    def on_host(self) -> HostArray:
        """NumPy's copy."""
        if self._copy is None:
            every, self._pending[:] = [*self._pending], []
            arrays = primitives.to_host_together([each._array for each in every])
            for each, array in zip(every, arrays, strict=True):
                each._copy, each._array = array, None
        assert self._copy is not None
        return self._copy


#: Threads of a process may work at queries of their own.
_LOCK = RLock()
#: All that are still used by someone, by identity: their equality is NumPy's.
_residents: WeakValueDictionary[int, Resident] = WeakValueDictionary()


def release() -> bool:
    """Move all arrays to the host; return whether there was one."""
    with _LOCK:
        every = [reference() for reference in _residents.valuerefs()]
    there = [each for each in every if each is not None and each.on_device is not None]
    for resident in there:
        resident.leave()
    return len(there) > 0


def _concat(parts: Any) -> DeviceArray | None:
    """Return parts one after the other on the device; None if some are elsewhere, or no room is."""
    arrays = [part.on_device if isinstance(part, Resident) else None for part in parts]
    if any(array is None for array in arrays):
        return None
    try:
        with working() as session:
            return session.arrays.concatenate(arrays)
    except DeviceMemoryError:
        return None
