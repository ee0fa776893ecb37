"""A store that counts what it is asked for."""

from __future__ import annotations

from collections import Counter

from gpu_windows.operators.state.store import MemoryStore


class Counting(MemoryStore):
    """A store that counts bytes, and knows that what callers say of lengths is true."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def read(self, kind: str, bucket: int) -> bytes | None:
        found = super().read(kind, bucket)
        self.counts.update(reads=1, bytes_read=len(found or b""))
        return found

    def write(self, kind: str, bucket: int, blob: bytes, *, held: int | None = None) -> None:
        assert held in (None, len(self.blobs.get((kind, bucket), b"")))
        self.counts.update(writes=1, bytes_written=len(blob))
        super().write(kind, bucket, blob, held=held)

    def remove(self, kind: str, bucket: int, *, held: int | None = None) -> None:
        assert held in (None, len(self.blobs[kind, bucket]))
        super().remove(kind, bucket, held=held)
