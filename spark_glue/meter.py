"""What a shard costs in a micro-batch: time in its operator, and what it keeps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

import pyarrow as pa

from gpu_windows.operators.base import Emission, Operator
from gpu_windows.operators.state.store import Store

#: Where a store holds how many rows and bytes it holds; in metadata, so that it is no row itself.
_WHERE = ("measures", 0)
_KNOWN = (b"rows", b"bytes")
#: Kinds of entries that are parts of windows: of those that no call has read none are known.
_OF_WINDOWS = {"timers", "trigger_state"}
_NS_A_MS = 1_000_000


@dataclass(frozen=True)
class Measures:
    """What is measured of a shard in a micro-batch, besides its `Counters`.

    Parameters
    ----------
    kernel_ms : float
        Milliseconds in the operator: kernels and what prepares them.
    state_ms : float
        Milliseconds in reading and writing state.
    state_rows : int
        Entries of state that the shard holds afterwards: slices, windows, kept rows.
    state_bytes : int
        Bytes of state that it holds afterwards.
    state_rows_change, state_bytes_change : int
        How many more than before.
    """

    kernel_ms: float
    state_ms: float
    state_rows: int
    state_bytes: int
    state_rows_change: int
    state_bytes_change: int

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of all that is measured."""
        return tuple(field.name for field in fields(cls))


class Meter(Store):
    """A store that knows how many bytes it holds, and the time in it and in what works on it.

    The bytes are kept in the store as a sum, for a call sees only the blobs that it needs.

    Parameters
    ----------
    store : Store
        Of one shard.
    """

    def __init__(self, store: Store) -> None:
        self._store, self.has_saved = store, store.has_saved
        self._lengths: dict[tuple[str, int], int] = {}
        self._change = 0
        self._in_store = self._in_operator = self._in_spark = 0  # nanoseconds
        self._rows = self._bytes = 0

    def begin(self) -> None:
        """Take what the store held before, if it held anything.

        Raises
        ------
        StateCorruptedError, StateVersionError
            Also if the sums are missing, or are all that is left.
        """
        found = self.load_first(*_WHERE)
        if found is not None:
            self._rows, self._bytes = (int(found.schema.metadata[name]) for name in _KNOWN)

    def read(self, kind: str, bucket: int) -> bytes | None:
        """Return a blob, or None."""
        with self._waiting():
            blob = self._store.read(kind, bucket)
        self._lengths[kind, bucket] = 0 if blob is None else len(blob)
        return blob

    def write(self, kind: str, bucket: int, blob: bytes, *, held: int | None = None) -> None:
        """Keep a blob."""
        held = self._replace(kind, bucket, len(blob), held)
        with self._waiting():
            self._store.write(kind, bucket, blob, held=held)

    def remove(self, kind: str, bucket: int, *, held: int | None = None) -> None:
        """Forget a blob."""
        held = self._replace(kind, bucket, 0, held)
        with self._waiting():
            self._store.remove(kind, bucket, held=held)

    def _replace(self, kind: str, bucket: int, length: int, held: int | None) -> int:
        """Count a blob in place of the one that is there; return how many bytes that one has."""
        place = kind, bucket
        if place not in self._lengths:
            if held is None:
                self.read(kind, bucket)
            else:
                self._lengths[place] = held
        held = self._lengths[place]
        self._change += length - held
        self._lengths[place] = length
        return held

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        began = time.perf_counter_ns()
        yield
        self._in_store += time.perf_counter_ns() - began

    @contextmanager
    def working(self) -> Iterator[None]:
        """Take the time of a block as the operator's, but for that in the store and in Spark."""
        began = time.perf_counter_ns() - self._elsewhere
        yield
        self._in_operator += time.perf_counter_ns() - self._elsewhere - began

    @property
    def _elsewhere(self) -> int:
        return self._in_store + self._in_spark

    def received(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Yield what Spark sends, and take the time in which it does."""
        while True:
            began = time.perf_counter_ns()
            table = next(tables, None)
            self._in_spark += time.perf_counter_ns() - began
            if table is None:
                return
            yield table

    def timed(self, emissions: Iterator[Emission]) -> Iterator[Emission]:
        """Yield what an operator gives, and take the time in which it makes it."""
        while True:
            with self.working():
                emission = next(emissions, None)
            if emission is None:
                return
            yield emission

    def finish(self, operator: Operator) -> Measures:
        """Return what was measured, once the operator has saved its state."""
        held = operator.state_size().items()
        rows = sum(count for kind, count in held if kind not in _OF_WINDOWS)
        size = self._bytes + self._change
        change = (rows - self._rows, self._change)
        if any(change):
            sums = (str(rows).encode(), str(size).encode())
            metadata = dict(zip(_KNOWN, sums, strict=True))
            self._store.save(*_WHERE, pa.table({}).replace_schema_metadata(metadata))
        times = (self._in_operator / _NS_A_MS, self._in_store / _NS_A_MS)
        return Measures(*times, rows, size, *change)
