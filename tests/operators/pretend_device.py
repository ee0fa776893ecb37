"""A device that is none: kernels run on the CPU, but its memory is limited and held by arrays."""

from __future__ import annotations

import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpu_windows.kernels.backend import Backend, select
from gpu_windows.kernels.cuda import session
from gpu_windows.kernels.cuda.memory import CudaBackend
from tests.kernels.pretend_session import session_of


class _Memory(bytearray):
    """Memory of an array, which its views keep: of an array itself they keep the memory alone."""


class PretendDevice:
    """Memory that is given back when an array is collected, as CuPy's is.

    Arrays come and go through the code that works with CuPy's, so errors take the same way.

    Attributes
    ----------
    limit : int
        Bytes that all arrays together may take.
    held, most : int
        Bytes that they take now, and took at most so far.
    calls : int
        Copies to the device and allocations so far.
    fails_at : int
        Number of the call that finds no memory, whatever is held; -1 for none.
    backend : Backend
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.limit, self.held, self.most = 1 << 62, 0, 0
        self.calls, self.fails_at = 0, -1
        arrays = SimpleNamespace(
            asarray=self._copy,
            ascontiguousarray=np.ascontiguousarray,
            asnumpy=self._read,
            concatenate=lambda parts: self._copy(np.concatenate(parts)),
            take=lambda values, index: self._copy(np.take(values, index)),
            empty=lambda count, dtype: self._copy(np.empty(count, dtype)),
            zeros=np.zeros,
        )
        opened = session_of(arrays)
        monkeypatch.setattr(session, "_session", lambda *_: opened)
        named = vars(select("cpu")) | {"name": "cuda", "reason": "a test"}
        self.backend: Backend = CudaBackend(**named)

    def _call(self) -> None:
        self.calls += 1
        if self.calls - 1 == self.fails_at:
            raise MemoryError("out of memory")

    def _read(self, array: Any) -> Any:
        """Copy to the host, which takes no memory of a device."""
        return np.array(array)

    def _copy(self, array: Any) -> Any:
        self._call()
        if self.held + array.nbytes > self.limit:
            raise MemoryError(f"Out of memory allocating {array.nbytes:,} bytes")
        memory = _Memory(array.nbytes)
        made: Any = np.frombuffer(memory, array.dtype).reshape(array.shape)
        made[...] = array
        self.held += made.nbytes
        self.most = max(self.most, self.held)
        weakref.finalize(memory, self._release, made.nbytes)
        return made

    def _release(self, size: int) -> None:
        self.held -= size
