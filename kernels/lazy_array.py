"""Arrays that become NumPy's when somebody looks at them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from gpu_windows.kernels.contract.arrays import HostArray


class LazyArray(NDArrayOperatorsMixin):
    """A one-dimensional array that behaves like NumPy's copy of it, which the first look makes.

    It is read only, and no buffer: `numpy.asarray` gives one, also for masks of pyarrow.

    Attributes
    ----------
    dtype : numpy.dtype
    size, nbytes : int
    """

    dtype: Any
    size: int
    nbytes: int

    @property
    @abstractmethod
    def on_host(self) -> HostArray:
        """NumPy's copy."""

    def __len__(self) -> int:
        return int(self.size)

    def __getitem__(self, index: Any) -> Any:
        return self.on_host[index]

    def __getattr__(self, name: str) -> Any:
        """Return what NumPy's copy has."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.on_host, name)

    def __array__(self, dtype: Any = None, copy: Any = None) -> HostArray:
        return np.array(self.on_host, dtype, copy=copy)

    def __arrow_array__(self, type: Any = None) -> Any:  # noqa: A002  # pyarrow's name
        import pyarrow as pa

        return pa.array(self.on_host, type)

    def __bool__(self) -> bool:
        return bool(self.on_host)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        if any(isinstance(out, LazyArray) for out in keywords.get("out", ())):
            raise TypeError("an array that is not NumPy's yet is read only")
        return getattr(ufunc, method)(*map(_looked_at, inputs), **keywords)

    def __array_function__(self, function: Any, _: Any, arguments: Any, keywords: Any) -> Any:
        return function(*_looked_into(arguments), **_looked_into(keywords))


class Pieces(LazyArray):
    """An array of the host in pieces, of this or a narrower type.

    On its way to a device the pieces are put together; the first look does it on the host.

    Parameters
    ----------
    parts : sequence of numpy.ndarray
        One-dimensional, none of them empty. Nobody may change them.
    dtype : numpy.dtype
    """

    def __init__(self, parts: Sequence[HostArray], dtype: Any) -> None:
        self.parts, self.dtype = parts, np.dtype(dtype)
        self.size = sum(map(len, parts))
        self.nbytes = self.size * self.dtype.itemsize

    @cached_property
    def on_host(self) -> HostArray:
        """The pieces one after the other."""
        whole = np.empty(self.size, self.dtype)
        fill(whole, self.parts)
        return whole


def fill(whole: HostArray, parts: Sequence[HostArray]) -> None:
    """Write arrays one after the other into one that has room for them, as its type."""
    begin = 0
    for part in parts:
        np.copyto(whole[begin : begin + len(part)], part, casting="unsafe")
        begin += len(part)


def _looked_at(argument: Any) -> Any:
    return argument.on_host if isinstance(argument, LazyArray) else argument


def _looked_into(argument: Any) -> Any:
    """Return an argument of a function with NumPy's copies in the place of lazy arrays."""
    if isinstance(argument, list):
        return [*map(_looked_into, argument)]
    if isinstance(argument, tuple):
        return tuple(map(_looked_into, argument))
    if isinstance(argument, dict):
        return {name: _looked_into(value) for name, value in argument.items()}
    return _looked_at(argument)
