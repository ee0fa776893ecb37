"""A store that notes the blobs of slices, and a way to have these become one early."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gpu_windows.operators.slices import blobs, stored
from gpu_windows.operators.state.store import MemoryStore


class Noted(MemoryStore):
    """A store that notes the blobs of slices that are read, written and removed."""

    def __init__(self) -> None:
        super().__init__()
        self.forget()

    def forget(self) -> None:
        """Note from now on."""
        self.was_read: set[int] = set()
        self.written: dict[int, int] = {}
        self.removed: set[int] = set()

    def read(self, kind: str, bucket: int) -> bytes | None:
        if kind == "slices":
            self.was_read.add(bucket)
        return super().read(kind, bucket)

    def write(self, kind: str, bucket: int, blob: bytes, *, held: int | None = None) -> None:
        if kind == "slices":
            assert held == 0, "a number is used once"
            assert (kind, bucket) not in self.blobs
            self.written[bucket] = len(blob)
        super().write(kind, bucket, blob, held=held)

    def remove(self, kind: str, bucket: int, *, held: int | None = None) -> None:
        if kind == "slices":
            assert held == len(self.blobs[kind, bucket])
            self.removed.add(bucket)
        super().remove(kind, bucket, held=held)

    @property
    def numbers(self) -> list[int]:
        """Of the blobs that there are."""
        return sorted(bucket for kind, bucket in self.blobs if kind == "slices")


@contextmanager
def merged_early(alike: int = 2) -> Iterator[None]:
    """Have blobs become one that are few and small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blobs, "MOST_ALIKE", alike)
        patch.setattr(stored, "_SMALL_BYTES", 1)
        patch.setattr(stored, "_ROWS_TOGETHER", 5)
        yield
