"""What the device has for strings, done by Arrow: what pylibcudf is asked, and as it answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from gpu_windows.kernels.cuda import texts


@dataclass(frozen=True)
class _Column:
    """A column on the device: of strings, or of 32-bit integers after two others."""

    array: pa.Array

    def offset(self) -> int:
        return 2

    def size(self) -> int:
        return len(self.array)

    def data(self) -> Any:
        numbers = np.concatenate([np.array([7, 7], np.int32), self.array.to_numpy()])
        return numbers.astype(np.int32).view(np.uint8)

    def to_arrow(self, metadata: None = None, stream: Any = None) -> pa.Array:
        del metadata, stream
        return self.array


class PretendLibrary:
    """The part of pylibcudf that `gpu_windows.kernels.cuda.texts` takes.

    Attributes
    ----------
    failures : int
        How many calls from now on find no memory.
    calls : int
    """

    def __init__(self) -> None:
        self.failures = self.calls = 0
        self.Column = SimpleNamespace(from_arrow=self._from_arrow)
        self.Table = lambda columns: SimpleNamespace(columns=lambda: columns)
        self.transform = SimpleNamespace(encode=self._encode)

    @contextmanager
    def used(self) -> Iterator[PretendLibrary]:
        """Have it taken for pylibcudf."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(texts, "library", lambda: self)
            yield self

    def _from_arrow(self, obj: pa.Array, stream: Any = None) -> _Column:
        del stream
        self.calls += 1
        if self.failures:
            self.failures -= 1
            raise MemoryError("std::bad_alloc: out_of_memory: RMM failure")
        assert obj.type in (pa.string(), pa.large_string()), f"libcudf takes no {obj.type}"
        return _Column(obj)

    def _encode(self, input: Any, stream: Any = None) -> tuple[Any, _Column]:  # noqa: A002
        """Return the rows of a table, sorted, nulls last, and where each row is among them."""
        del stream
        (column,) = input.columns()
        array = column.array.cast(pa.large_binary())
        found = array.unique()
        found = found.take(pc.array_sort_indices(found, null_placement="at_end"))
        places = pc.index_in(array, found)
        text = pa.Array.view(found.cast(pa.binary()), pa.string())
        return SimpleNamespace(columns=lambda: (_Column(text),)), _Column(places)
