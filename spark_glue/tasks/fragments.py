"""Messages cut into rows of a shuffle, and joined behind it.

Spark sends as many rows to Python together as its settings say, whatever their size, so a row must
be small. To read a message takes tens of microseconds, whatever its size, so a message should be
large. So messages are cut by bytes: where their fragments follow one another in an Arrow batch,
their bytes do so too, and joining them copies nothing.
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
#: The number of a message that is one fragment: no other one is looked for.
WHOLE = 0

#: The lowest bits of a number: whether the message has fragments after this one, and before it.
_GOES_ON, _CONTINUES = 1, 2
#: Where a sender begins in a number; below are the fragments that it sent to a shard before.
_SENDER_BIT = 40
#: What Arrow's buffers are aligned to.
_ALIGNED = 8


class Cutter:
    """Cuts messages for shards.

    Parameters
    ----------
    most : int
        Bytes of a fragment.
    sender : int
        A number that no other sender to the same shards has.
    """

    def __init__(self, most: int, sender: int = 0) -> None:
        self._most = most
        self._sender = sender << _SENDER_BIT
        self._sent: Counter[int] = Counter()

    def cut(self, shards: Sequence[int], messages: Sequence[bytes]) -> pa.RecordBatch:
        """Return the fragments of messages, below 2 GiB together, each for a shard."""
        lengths = np.array([len(each) for each in messages], np.int64)
        counts = np.maximum(-(-lengths // self._most), 1)
        total = int(counts.sum())
        message = np.repeat(np.arange(len(messages)), counts)
        place = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        ends = np.zeros(total + 1, np.int32)
        begins = np.cumsum(lengths) - lengths
        ends[1:] = begins[message] + np.minimum((place + 1) * self._most, lengths[message])
        numbers = (self._first_numbers(shards, counts)[message] + place) << 2
        numbers |= np.where(place + 1 < counts[message], _GOES_ON, 0)
        numbers |= np.where(place > 0, _CONTINUES, 0)
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
    """Return rows that bring every shard a small message."""
    columns = [[*shards], [WHOLE] * len(shards), [message] * len(shards)]
    return pa.record_batch(
        [pa.array(c, f.type) for c, f in zip(columns, PACKED, strict=True)], schema=PACKED
    )


def join_fragments(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Buffer]]:
    """Yield messages, each with its shard, as soon as all fragments have come, in whatever order.

    Raises
    ------
    StateCorruptedError
        If the last batch leaves fragments over.
    """
    waiting = _Waiting()
    for batch in batches:
        for part in _find_parts(batch):
            whole = part if part.is_whole else waiting.add(part)
            if whole is not None:
                yield whole.shard, whole.message
    waiting.check_is_empty()


@dataclass(frozen=True)
class _Part:
    """Fragments that follow one another: numbers from ``first`` up to, not with, ``end``."""

    shard: int
    first: int
    end: int
    continues: bool
    goes_on: bool
    data: tuple[pa.Buffer, ...]

    @property
    def is_whole(self) -> bool:
        return not (self.continues or self.goes_on)

    @property
    def message(self) -> pa.Buffer:
        """The bytes, in memory as kernels read columns."""
        first, *others = self.data
        if others or first.address % _ALIGNED:
            return pa.py_buffer(b"".join(self.data))
        return first

    def copy(self) -> _Part:
        """Return the same without the memory of the batch that it came with."""
        return replace(self, data=tuple(pa.py_buffer(each.to_pybytes()) for each in self.data))

    def join(self, after: _Part) -> _Part:
        data = self.data + after.data
        return replace(self, end=after.end, goes_on=after.goes_on, data=data)


def _find_parts(batch: pa.RecordBatch) -> Iterator[_Part]:
    """Yield the fragments of a batch, those together that follow one another."""
    if not batch.num_rows:
        return
    shards, numbers = batch.column(0).to_numpy(), batch.column(1).to_numpy()
    order, more = numbers >> 2, (numbers & _GOES_ON) != 0
    follows = (np.diff(order) == 1) & (np.diff(shards) == 0) & more[:-1]
    edges = [0, *(np.flatnonzero(~follows) + 1).tolist(), len(numbers)]
    offsets, data = _bytes_of(batch.column(2))
    for begin, end in pairwise(edges):
        yield _Part(
            shard=int(shards[begin]),
            first=int(order[begin]),
            end=int(order[end - 1]) + 1,
            continues=bool(numbers[begin] & _CONTINUES),
            goes_on=bool(more[end - 1]),
            data=(data.slice(int(offsets[begin]), int(offsets[end] - offsets[begin])),),
        )


def _bytes_of(blobs: pa.Array) -> tuple[NDArray[Any], pa.Buffer]:
    """Return where each blob begins in their bytes, and the last one ends."""
    _, offsets, data = blobs.buffers()
    width = np.int64 if types.is_large_binary(blobs.type) else np.int32
    ends = np.frombuffer(offsets, width)[blobs.offset : blobs.offset + len(blobs) + 1]
    return ends, pa.py_buffer(b"") if data is None else data


class _Waiting:
    """Parts of messages whose other fragments have not come yet."""

    def __init__(self) -> None:
        self._by_first: dict[tuple[int, int], _Part] = {}
        self._by_end: dict[tuple[int, int], _Part] = {}

    def add(self, part: _Part) -> _Part | None:
        """Add a part; return the message that it completes."""
        if (part.shard, part.first) in self._by_first or (part.shard, part.end) in self._by_end:
            rule = "a shuffle brings every fragment of a message once"
            raise StateCorruptedError(rule, value=f"one of shard {part.shard} again")
        part = part.copy()
        before = self._by_end.pop((part.shard, part.first), None) if part.continues else None
        if before is not None:
            del self._by_first[before.shard, before.first]
            part = before.join(part)
        after = self._by_first.pop((part.shard, part.end), None) if part.goes_on else None
        if after is not None:
            del self._by_end[after.shard, after.end]
            part = part.join(after)
        if part.is_whole:
            return part
        self._by_first[part.shard, part.first] = self._by_end[part.shard, part.end] = part
        return None

    def check_is_empty(self) -> None:
        """Raise `StateCorruptedError` where fragments are left over."""
        for part in self._by_first.values():
            rule = "a shuffle brings all fragments of a message"
            raise StateCorruptedError(rule, value=f"{part.end - part.first} of shard {part.shard}")
