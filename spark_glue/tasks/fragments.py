"""Messages cut into fragments, which are rows of a shuffle, and joined after it.

Spark sends a fixed number of rows to Python at once, whatever their size, so a row must be small.
Reading a message takes tens of microseconds, whatever its size, so a message should be large. So
messages are cut by bytes. Where fragments are adjacent in an Arrow batch, their bytes are too, and
joining them copies nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types

from gpu_windows.errors import StateCorruptedError

#: Names of the columns: shard, number of the fragment, its bytes.
SHARD, NUMBER, BLOB = "__shard", "__number", "__blob"

PACKED = pa.schema(
    [pa.field(SHARD, pa.int64()), pa.field(NUMBER, pa.int64()), pa.field(BLOB, pa.binary())]
)
#: The number of a message that is one fragment, so that no others belong to it.
WHOLE = 0

#: The lowest bits of a number: whether the message has fragments after this one, and before it.
_HAS_NEXT, _HAS_PREVIOUS = 1, 2
#: First bit of the sender in a number; the bits below count its fragments to a shard.
_SENDER_BIT = 40
#: What Arrow's buffers are aligned to.
_ALIGNED = 8


class Cutter:
    """Cuts messages for shards into fragments.

    Parameters
    ----------
    max_bytes : int
        Bytes of a fragment.
    sender : int
        A number that no other sender to the same shards has.
    """

    def __init__(self, max_bytes: int, sender: int = 0) -> None:
        self._max_bytes = max_bytes
        self._sender = sender << _SENDER_BIT
        self._sent: Counter[int] = Counter()

    def cut(self, shards: Sequence[int], messages: Sequence[bytes]) -> pa.RecordBatch:
        """Return the fragments of messages, each for a shard; all have less than 2 GiB together."""
        lengths = np.array([len(each) for each in messages], np.int64)
        counts = np.maximum(-(-lengths // self._max_bytes), 1)
        total = int(counts.sum())
        message = np.repeat(np.arange(len(messages)), counts)
        index = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        ends = np.zeros(total + 1, np.int32)
        begins = np.cumsum(lengths) - lengths
        ends[1:] = begins[message] + np.minimum((index + 1) * self._max_bytes, lengths[message])
        numbers = (self._first_numbers(shards, counts)[message] + index) << 2
        numbers |= np.where(index + 1 < counts[message], _HAS_NEXT, 0)
        numbers |= np.where(index > 0, _HAS_PREVIOUS, 0)
        # One copy into memory of its size: Arrow's builder doubles its own, which takes longer.
        data = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(messages))]
        blobs = pa.Array.from_buffers(pa.binary(), total, data)
        columns = [np.asarray(shards, np.int64)[message], numbers | self._sender, blobs]
        return pa.record_batch(columns, schema=PACKED)

    def _first_numbers(self, shards: Sequence[int], counts: NDArray[np.int64]) -> NDArray[np.int64]:
        first = []
        for shard, count in zip(shards, counts.tolist(), strict=True):
            first.append(self._sent[shard])
            self._sent[shard] += count
        return np.array(first, np.int64)


def send_whole(shards: Sequence[int], message: bytes) -> pa.RecordBatch:
    """Return rows with one small message for every shard."""
    columns = [[*shards], [WHOLE] * len(shards), [message] * len(shards)]
    return pa.record_batch(columns, schema=PACKED)


def join_fragments(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Buffer]]:
    """Yield messages, each with its shard, once all their fragments have arrived in any order.

    Raises
    ------
    StateCorruptedError
        If fragments are missing after the last batch.
    """
    incomplete = _IncompleteMessages()
    for batch in batches:
        for part in _find_parts(batch):
            whole = part if part.is_whole else incomplete.add(part)
            if whole is not None:
                yield whole.shard, whole.message
    incomplete.check_is_empty()


@dataclass(frozen=True)
class _Part:
    """Adjacent fragments of a message, with the numbers ``first`` to ``end - 1``."""

    shard: int
    first: int
    end: int
    has_previous: bool
    has_next: bool
    data: tuple[pa.Buffer, ...]

    @property
    def is_whole(self) -> bool:
        return not (self.has_previous or self.has_next)

    @property
    def message(self) -> pa.Buffer:
        """The bytes, aligned as Arrow's buffers are."""
        first, *others = self.data
        if others or first.address % _ALIGNED:
            return pa.py_buffer(b"".join(self.data))
        return first

    def copy(self) -> _Part:
        """Return a copy that does not keep the memory of its batch."""
        return replace(self, data=tuple(pa.py_buffer(each.to_pybytes()) for each in self.data))

    def join(self, after: _Part) -> _Part:
        data = self.data + after.data
        return replace(self, end=after.end, has_next=after.has_next, data=data)


def _find_parts(batch: pa.RecordBatch) -> Iterator[_Part]:
    """Yield the fragments of a batch, adjacent ones together."""
    if not batch.num_rows:
        return
    shards, numbers = batch.column(0).to_numpy(), batch.column(1).to_numpy()
    order, more = numbers >> 2, (numbers & _HAS_NEXT) != 0
    follows = (np.diff(order) == 1) & (np.diff(shards) == 0) & more[:-1]
    edges = [0, *(np.flatnonzero(~follows) + 1).tolist(), len(numbers)]
    offsets, data = _bytes_of(batch.column(2))
    for begin, end in pairwise(edges):
        yield _Part(
            shard=int(shards[begin]),
            first=int(order[begin]),
            end=int(order[end - 1]) + 1,
            has_previous=bool(numbers[begin] & _HAS_PREVIOUS),
            has_next=bool(more[end - 1]),
            data=(data.slice(int(offsets[begin]), int(offsets[end] - offsets[begin])),),
        )


def _bytes_of(blobs: pa.Array) -> tuple[NDArray[Any], pa.Buffer]:
    """Return the offset of each blob, with the end of the last one, and their bytes."""
    _, offsets, data = blobs.buffers()
    width = np.int64 if types.is_large_binary(blobs.type) else np.int32
    ends = np.frombuffer(offsets, width)[blobs.offset : blobs.offset + len(blobs) + 1]
    return ends, pa.py_buffer(b"") if data is None else data


class _IncompleteMessages:
    """Parts of messages whose other fragments have not arrived yet."""

    def __init__(self) -> None:
        self._by_first: dict[tuple[int, int], _Part] = {}
        self._by_end: dict[tuple[int, int], _Part] = {}

    def add(self, part: _Part) -> _Part | None:
        """Add a part; return the message that it completes."""
        if (part.shard, part.first) in self._by_first or (part.shard, part.end) in self._by_end:
            rule = "a shuffle delivers every fragment of a message once"
            raise StateCorruptedError(rule, value=f"a second one of shard {part.shard}")
        part = part.copy()
        before = self._by_end.pop((part.shard, part.first), None) if part.has_previous else None
        if before is not None:
            del self._by_first[before.shard, before.first]
            part = before.join(part)
        after = self._by_first.pop((part.shard, part.end), None) if part.has_next else None
        if after is not None:
            del self._by_end[after.shard, after.end]
            part = part.join(after)
        if part.is_whole:
            return part
        self._by_first[part.shard, part.first] = self._by_end[part.shard, part.end] = part
        return None

    def check_is_empty(self) -> None:
        """Raise `StateCorruptedError` if a message is incomplete."""
        for part in self._by_first.values():
            rule = "a shuffle delivers all fragments of a message"
            raise StateCorruptedError(rule, value=f"{part.end - part.first} of shard {part.shard}")
