"""Arrays of a device that is none: what CuPy lets one do with its own, and no more.

An array ends where a page begins that nobody may touch, so that reading or writing behind it ends
the process. What nothing wrote has a pattern. Arrays of the host are refused, as CuPy does.
"""

from __future__ import annotations

import ctypes
import mmap
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

#: What is in memory that nothing wrote.
POISON = 0xA5

#: Calls of CuPy that compute: the function and the dtypes of its arrays. CuPy compiles a kernel for
#: each.
computed: set[tuple[str, ...]] = set()


def _record(name: str, *inputs: Any) -> None:
    """Add a call to `computed`."""
    arrays = inputs[0] if inputs and isinstance(inputs[0], list | tuple) else inputs
    computed.add((name, *(each.dtype.name for each in arrays if isinstance(each, DeviceArray))))


_C = ctypes.CDLL(None, use_errno=True)
_C.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def _guarded(count: int, dtype: Any) -> np.ndarray[Any, Any]:
    """Allocate an array, before a page without any access and after one."""
    dtype, page = np.dtype(dtype), mmap.PAGESIZE
    size = count * dtype.itemsize
    pages = max(1, -(-size // page))
    memory = mmap.mmap(-1, (pages + 2) * page)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    end = base + (pages + 1) * page
    ctypes.memset(base + page, POISON, pages * page)
    for guard in (base, end):
        if _C.mprotect(guard, page, 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    return np.frombuffer(memory, dtype, count, (pages + 1) * page - size)


class DeviceArray(NDArrayOperatorsMixin):
    """An array of the pretended device; without an implicit way to NumPy.

    Parameters
    ----------
    values : numpy.ndarray
        They are copied, unless they are in guarded memory.
    """

    def __init__(self, values: Any, *, guarded: bool = False) -> None:
        if not guarded:
            memory = _guarded(values.size, values.dtype).reshape(values.shape)
            memory[...] = values
            values = memory
        self._values = values
        self.dtype, self.size, self.shape = values.dtype, values.size, values.shape
        self.ndim, self.nbytes, self.strides = values.ndim, values.nbytes, values.strides
        self.flags = values.flags
        self.data = SimpleNamespace(ptr=values.ctypes.data)

    def __len__(self) -> int:
        return len(self._values)

    def __int__(self) -> int:
        return int(self._values)

    def __bool__(self) -> bool:
        return bool(self._values)

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, int | slice):
            _record("getitem", self, index)
        return DeviceArray(np.asarray(self._values[_inner(index)]))

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("an array of the device is not one of NumPy's by itself")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        if named or method != "__call__":
            return NotImplemented
        _record(ufunc.__name__, *inputs)
        return DeviceArray(np.asarray(ufunc(*map(_inner, inputs))))

    def view(self, dtype: Any) -> DeviceArray:
        """Return the same memory as another type."""
        return DeviceArray(self._values.view(dtype), guarded=True)

    def astype(self, dtype: Any, *, copy: bool = True) -> DeviceArray:
        """Return the values as another type."""
        if not copy and self.dtype == dtype:
            return self
        computed.add(("astype", self.dtype.name, np.dtype(dtype).name))
        return DeviceArray(self._values.astype(dtype))


def _inner(value: Any) -> Any:
    """Return the values of an array of the device; refuse one of the host."""
    if isinstance(value, DeviceArray):
        return value._values
    if isinstance(value, np.ndarray) or hasattr(value, "on_host"):
        raise TypeError(f"Unsupported type {type(value).__name__}: it is not on the device")
    if isinstance(value, list | tuple):
        return type(value)(map(_inner, value))
    return value


class PretendedCupy:
    """The functions of CuPy that the kernels' package calls; others are an AttributeError."""

    ndarray = DeviceArray
    __version__ = "pretended"

    def asarray(self, array: Any) -> DeviceArray:
        """Copy to the device what is not there."""
        if isinstance(array, DeviceArray):
            return array
        if not isinstance(array, np.ndarray):
            raise TypeError(f"neither an array of the device nor NumPy's: {type(array).__name__}")
        return DeviceArray(array)

    def ascontiguousarray(self, array: DeviceArray) -> DeviceArray:
        """Return the array, which always is."""
        _inner(array)
        return array

    def asnumpy(self, array: Any) -> Any:
        """Copy to the host what is not there."""
        return array if isinstance(array, np.ndarray) else np.array(_inner(array))

    def empty(self, count: int, dtype: Any) -> DeviceArray:
        """Allocate."""
        return DeviceArray(_guarded(count, dtype), guarded=True)

    def zeros(self, count: int, dtype: Any) -> DeviceArray:
        """Allocate zeros."""
        return DeviceArray(np.zeros(count, dtype))

    def full(self, count: int, value: Any, dtype: Any) -> DeviceArray:
        """Allocate values."""
        computed.add(("full", np.dtype(dtype).name))
        return DeviceArray(np.full(count, value, dtype))

    def argsort(self, keys: DeviceArray, *, kind: str | None = None) -> DeviceArray:
        """Sort, always stably."""
        if kind not in (None, "stable"):
            raise ValueError(f"CuPy sorts stably only, not {kind!r}")
        _record("argsort", keys)
        return DeviceArray(np.argsort(_inner(keys), kind="stable"))

    def __getattr__(self, name: str) -> Any:
        if name not in ("concatenate", "cumsum", "flatnonzero", "take"):
            raise AttributeError(f"the pretended CuPy has no {name}")
        function = getattr(np, name)

        def call(*arguments: Any) -> DeviceArray:
            made = DeviceArray(function(*map(_inner, arguments)))
            _record(name, *arguments)
            return made

        return call
