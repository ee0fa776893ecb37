"""Launches without Numba: the parameters of a kernel laid out once, its arguments as raw words.

Numba wraps every array and finds out its type again at each launch. Here a launch writes two words
an array and one a scalar, and calls the driver.

What is relied on, of numba-cuda 0.30: ``dispatcher.compile(signature)`` gives the kernel that is
compiled already, ``kernel.library.get_cufunc().handle`` its handle on the current device, and
``kernel.cooperative`` is false. And how its kernels take arguments, every one 8 bytes here: a
one-dimensional array as seven words (meminfo and parent, both null; number of items, bytes of an
item, address, shape, stride), a tuple as its fields. `tests/kernels/test_launcher.py` compares all
that with what numba-cuda passes itself, and with the PTX.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from threading import Lock
from typing import Any

import numpy as np
from numba import types
from numba.np import numpy_support

from gpu_windows.kernels.cuda.session import LASTING, Session

#: Words that no launch changes, ahead of those that it does: null, and the bytes of an item.
_FIXED = (0, 1, 2, 4, 8)
_WORD = 8

#: How `struct` writes the scalars that kernels take.
_SCALARS = {types.int64: "q", types.float64: "d"}


class Launcher:
    """Launches a compiled kernel, of whose signatures the dtypes of its arrays choose one.

    Parameters
    ----------
    name : str
        Of the kernel.
    dispatcher : object
        What Numba made of it, compiled for all signatures.
    signatures : sequence of tuple
        Numba argument types. They differ in nothing but dtypes.
    """

    def __init__(self, name: str, dispatcher: Any, signatures: Sequence[Any]) -> None:
        from cuda.bindings import driver

        self._name, self._dispatcher, self._driver = name, dispatcher, driver
        first = signatures[0]
        #: The class of each argument that is a named tuple, None for others.
        self._tuples = [getattr(kind, "instance_class", None) for kind in first]
        self._is_array = [isinstance(kind, types.Array) for kind in _flat_types(first)]
        self._overloads = {made.dtypes: made for made in map(_Overload, signatures)}

    def __call__(self, session: Session, blocks: int, threads: int, arguments: Any) -> None:
        """Launch on the session's stream; do not wait.

        The caller keeps the arrays until this returns. What frees them later is on the same stream.

        Raises
        ------
        TypeError
            If the arguments are of none of the signatures.
        RuntimeError
            If the driver refuses, which may be the first to be told that an earlier kernel failed.
        """
        dtypes, values = self._words(session, self._flatten(arguments))
        overload = self._overloads.get(dtypes)
        if overload is None:
            raise self._refusal(f"arrays of {', '.join(map(str, dtypes))}")
        with overload.lock:  # its words are of one launch, until the driver has copied them
            function = overload.functions.get(session.ordinal)
            if function is None:
                function = self._load(overload, session.ordinal)
            try:
                overload.write(values)
            except struct.error as error:
                raise self._refusal(f"a scalar of another type: {error}") from error
            (status,) = self._driver.cuLaunchKernel(
                function, blocks, 1, 1, threads, 1, 1, 0,
                session.stream_handle, overload.parameters, 0,
            )  # fmt: skip
        if status != self._driver.CUresult.CUDA_SUCCESS:
            earlier = "; it failed, or a kernel before it" if status.name in LASTING else ""
            raise RuntimeError(f"{self._name} was not launched: {status.name}{earlier}")

    def _flatten(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the arguments with named tuples field by field."""
        if len(arguments) != len(self._tuples):
            raise self._refusal(f"{len(arguments)} arguments")
        flat: list[Any] = []
        for argument, kind in zip(arguments, self._tuples, strict=True):
            if kind is None:
                flat.append(argument)
            elif type(argument) is kind:
                flat.extend(argument)
            else:
                raise self._refusal(f"{type(argument).__name__} for {kind.__name__}")
        return flat

    def _words(self, session: Session, flat: list[Any]) -> tuple[tuple[Any, ...], list[Any]]:
        """Return the dtypes of the arrays, and what a launch writes."""
        device_array = session.arrays.ndarray
        dtypes: list[Any] = []
        values: list[Any] = []
        for value, is_array in zip(flat, self._is_array, strict=True):
            if not is_array:
                values.append(value)
                continue
            array = value
            if not isinstance(value, device_array) or value.size == 0:
                array = _stand_in(session, value)
            if array.ndim != 1 or not array.flags.c_contiguous:
                layout = f"an array of {array.ndim} dimensions with strides {array.strides}"
                raise self._refusal(layout)
            dtypes.append(array.dtype)
            values += (array.size, array.data.ptr)
        return tuple(dtypes), values

    def _load(self, overload: _Overload, ordinal: int) -> Any:
        """Return the driver's function on the current device; the dispatcher keeps it loaded."""
        try:
            kernel = self._dispatcher.compile(overload.signature)
            cooperative, handle = kernel.cooperative, kernel.library.get_cufunc().handle
        except AttributeError as error:
            found = f"numba-cuda {version('numba-cuda')}"
            raise RuntimeError(f"{found} gives no function of {self._name}: {error}") from error
        if cooperative:
            raise RuntimeError(f"{self._name} synchronises its grid, which needs another launch")
        function = overload.functions[ordinal] = self._driver.CUfunction(int(handle))
        return function

    def _refusal(self, got: str) -> TypeError:
        signatures = (made.signature for made in self._overloads.values())
        expected = " or ".join(", ".join(map(str, kinds)) for kinds in signatures)
        return TypeError(f"{self._name} takes {expected}, got {got}")


class _Overload:
    """The kernel of one signature: where its parameters are, and its function on each device.

    Attributes
    ----------
    dtypes : tuple of numpy.dtype
        Of the arrays.
    parameters : int
        Address of the addresses of all parameters, as the driver takes them.
    functions : dict
        The driver's function, by number of the device.
    lock : Lock
        Held from `write` until the driver was called.
    """

    def __init__(self, signature: Any) -> None:
        kinds = [*_flat_types(signature)]
        self.signature = signature
        self.dtypes = tuple(
            numpy_support.as_dtype(kind.dtype) for kind in kinds if isinstance(kind, types.Array)
        )
        self.functions: dict[int, Any] = {}
        self.lock = Lock()
        codes, places = _layout(kinds)
        self._codes = struct.Struct(f"={codes}")
        self._words = (ctypes.c_int64 * (len(_FIXED) + len(codes)))(*_FIXED)
        begin = ctypes.addressof(self._words)
        addresses = [begin + _WORD * place for place in places]
        self._addresses = (ctypes.c_void_p * len(places))(*addresses)
        self.parameters = ctypes.addressof(self._addresses)

    def write(self, values: list[Any]) -> None:
        """Write number of items and address of each array, and the scalars, in their order."""
        self._codes.pack_into(self._words, _WORD * len(_FIXED), *values)


def _layout(kinds: Iterable[Any]) -> tuple[str, list[int]]:
    """Return how `struct` writes the words of a launch, and which word each parameter is."""
    codes, places, null = "", [], _FIXED.index(0)
    for kind in kinds:
        word = len(_FIXED) + len(codes)
        if isinstance(kind, types.Array) and kind.ndim == 1 and kind.layout == "C":
            item = _FIXED.index(numpy_support.as_dtype(kind.dtype).itemsize)
            places += [null, null, word, item, word + 1, word, item]
            codes += "qQ"
        elif kind in _SCALARS:
            places.append(word)
            codes += _SCALARS[kind]
        else:
            raise TypeError(f"kernels take contiguous arrays, int64 and float64, not {kind}")
    return codes, places


def _flat_types(signature: Iterable[Any]) -> Iterable[Any]:
    """Yield the types of arguments, those of a named tuple field by field."""
    for kind in signature:
        if isinstance(kind, types.BaseNamedTuple):
            yield from kind
        else:
            yield kind


def _stand_in(session: Session, value: Any) -> Any:
    """Return an array of one element for one that has none; refuse what is not on the device."""
    if not hasattr(value, "dtype") or np.isscalar(value) or value.size > 0:
        raise TypeError(f"a kernel takes arrays of the device, got {type(value).__name__}")
    return session.placeholder(value.dtype)
