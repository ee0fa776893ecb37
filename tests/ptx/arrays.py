"""Arrays of a device that is none: what CuPy lets one do with its own, and no more.

Nothing else is near an array, so that a kernel that reads or writes besides one is in none, and
what nothing wrote is known: who reads it, a kernel or CuPy, fails. Arrays of the host are refused,
as CuPy does.
"""

from __future__ import annotations

import weakref
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

#: What is in memory that nothing wrote.
POISON = 0xA5
#: Bytes before and after an array, at least; and what its address is a multiple of, as CuPy's.
_GUARD, _ALIGNMENT = 4_096, 512


class NeverWrittenError(AssertionError):
    """Memory is read that nothing wrote."""


#: Calls of CuPy that compute: the function and the dtypes of its arrays. CuPy compiles a kernel for
#: each.
computed: set[tuple[str, ...]] = set()


#: Every call of CuPy that allocates, copies or computes, by its name; a view does nothing.
calls: Counter[str] = Counter()
#: Calls that return when the device has done all that came before: what they give is the host's, or
#: as long as the device finds.
WAITING = frozenset({"asnumpy", "int", "bool", "flatnonzero"})


def _record(name: str, *inputs: Any) -> None:
    """Add a call to `calls` and to `computed`."""
    calls[name] += 1
    if inputs and isinstance(inputs[0], list | tuple):  # as many as there are
        computed.add((name, *sorted({each.dtype.name for each in inputs[0]})))
        return
    computed.add((name, *(each.dtype.name for each in inputs if isinstance(each, DeviceArray))))


class _Memory:
    """Memory of the device, between bytes that no kernel may touch.

    Attributes
    ----------
    values : numpy.ndarray
    written : numpy.ndarray of uint8, or None
        A byte for each of its bytes, 1 if something wrote it; None if all is written.
    whole : _Memory, optional
        Of which it is a part, and which lives as long.
    """

    whole: _Memory | None = None

    def __init__(self, count: int, dtype: Any, *, is_written: bool) -> None:
        dtype = np.dtype(dtype)
        size = count * dtype.itemsize
        whole = np.full(size + 2 * _GUARD + _ALIGNMENT, POISON, np.uint8)
        begin = _GUARD + -(whole.ctypes.data + _GUARD) % _ALIGNMENT
        self.values = whole[begin : begin + size].view(dtype)
        self.written = None if is_written or not size else np.zeros(size, np.uint8)

    def part(self, values: Any) -> _Memory:
        """Return the memory of some of its values, which follow each other."""
        made = _Memory.__new__(_Memory)
        made.values, made.written, made.whole = values, self.written, self
        if self.written is not None:
            begin = values.ctypes.data - self.values.ctypes.data
            made.written = self.written[begin : begin + values.nbytes]
        return made

    def check_written(self, part: int | slice = slice(None)) -> None:
        """Refuse to read what nothing wrote; ``part`` are places of values."""
        if self.written is None:
            return
        written: Any = self.written.reshape(-1, self.values.itemsize).all(1)
        if not written[part].all():
            missing = len(written) - np.count_nonzero(written)
            raise NeverWrittenError(f"{missing} of {len(written)} values were never written")
        if written.all():
            self.written = None


#: Memory that is in use, by its address.
_memories: weakref.WeakValueDictionary[int, _Memory] = weakref.WeakValueDictionary()


def written_bytes(address: int) -> int | None:
    """Return the address of `_Memory.written` of an array; None where all is written."""
    memory = _memories.get(address)
    if memory is None or memory.written is None:
        return None
    return int(memory.written.ctypes.data)


class DeviceArray(NDArrayOperatorsMixin):
    """An array of the pretended device; without an implicit way to NumPy.

    Parameters
    ----------
    values : numpy.ndarray
        They are copied, unless they are in memory of the device.
    memory : _Memory, optional
        In which they are.
    """

    def __init__(self, values: Any, memory: _Memory | None = None) -> None:
        if memory is None:
            memory = _Memory(values.size, values.dtype, is_written=True)
            memory.values.reshape(values.shape)[...] = values
            values = memory.values.reshape(values.shape)
        self._values, self._memory = values, memory
        there = _memories.get(values.ctypes.data)
        if there is None or there.values.nbytes <= values.nbytes:  # else of its first values
            _memories[values.ctypes.data] = memory
        self.dtype, self.size, self.shape = values.dtype, values.size, values.shape
        self.ndim, self.nbytes, self.strides = values.ndim, values.nbytes, values.strides
        self.flags = values.flags
        self.data = SimpleNamespace(ptr=values.ctypes.data)

    def __len__(self) -> int:
        return len(self._values)

    def __int__(self) -> int:
        calls["int"] += 1
        return int(_inner(self))

    def __bool__(self) -> bool:
        calls["bool"] += 1
        return bool(_inner(self))

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, int | slice):
            _record("getitem", self, index)
        if isinstance(index, slice) and index.step in (None, 1):
            values = self._values[index]
            return DeviceArray(values, self._memory.part(values))
        self._memory.check_written(index if isinstance(index, int | slice) else slice(None))
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
        values = self._values.view(dtype)
        return DeviceArray(values, self._memory.part(values))

    def astype(self, dtype: Any, *, copy: bool = True) -> DeviceArray:
        """Return the values as another type."""
        if not copy and self.dtype == dtype:
            return self
        calls["astype"] += 1
        computed.add(("astype", self.dtype.name, np.dtype(dtype).name))
        return DeviceArray(_inner(self).astype(dtype))


def _inner(value: Any) -> Any:
    """Return the values of an array of the device; refuse one of the host."""
    if isinstance(value, DeviceArray):
        value._memory.check_written()
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
        calls["asarray"] += 1
        return DeviceArray(array)

    def ascontiguousarray(self, array: DeviceArray) -> DeviceArray:
        """Return the array, which always is."""
        calls["ascontiguousarray"] += 1
        _inner(array)
        return array

    def asnumpy(self, array: Any) -> Any:
        """Copy to the host what is not there."""
        if isinstance(array, np.ndarray):
            return array
        calls["asnumpy"] += 1
        return np.array(_inner(array))

    def empty(self, count: int, dtype: Any) -> DeviceArray:
        """Allocate."""
        calls["empty"] += 1
        memory = _Memory(count, dtype, is_written=False)
        return DeviceArray(memory.values, memory)

    def zeros(self, count: int, dtype: Any) -> DeviceArray:
        """Allocate zeros."""
        calls["zeros"] += 1
        return DeviceArray(np.zeros(count, dtype))

    def full(self, count: int, value: Any, dtype: Any) -> DeviceArray:
        """Allocate values."""
        calls["full"] += 1
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
