"""What goes from one stage of a streaming query to the next: rows, and what only passes.

Spark has one output of a stage. So late rows, side outputs and measures of a stage, which are
outputs of the whole query, go with its results through the stages behind it, as messages.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.monitoring.progress import USER
from gpu_windows.operators.columns.batches import gather
from gpu_windows.spark_glue.garbage import spare_modules
from gpu_windows.spark_glue.packing import PACKED, by_bytes, from_ipc
from gpu_windows.spark_glue.tagged import AFTER, RESULT, frame_of

#: Name of the column that tells rows from messages, which are null in all others: it is a message;
#: of a result that came before its stage had reached the watermark of the micro-batch, the one that
#: its shard had reached before; null in all other rows.
CARRIED = "__carried"
#: Kinds of rows of a stage, of all that one output has: those of the stage before have `STRIDE`
#: more.
STRIDE = 1 << 16

#: What a message begins with, other than an Arrow IPC stream; then the length of its head.
_MAGIC, _LENGTH = b"pass", struct.Struct("<I")
#: What a column holds of a watermark, in Spark's milliseconds; what is longer is a message.
_REACHED = np.dtype("<i8")
REACHED_BYTES = _REACHED.itemsize
#: In the metadata of rows that came before the watermark: the one before, if there was one.
_BEFORE = b"gpu_windows.before"
_ROWS = 1 << 16
_FIELD = pa.field(CARRIED, pa.binary())


@dataclass(frozen=True)
class Message:
    """A row of the output of a stage, on its way to that of the last one.

    Parameters
    ----------
    stage : str
    kind : int
        In the stage's own output.
    blob : bytes, optional
    measured : dict, optional
        What a shard measured.
    """

    stage: str
    kind: int
    blob: bytes | None
    measured: Mapping[str, Any] | None

    @property
    def packed(self) -> bytes:
        """What `from_packed` reads."""
        told = {"stage": self.stage, "kind": self.kind, "measured": self.measured}
        head = json.dumps(told).encode()
        return b"".join((_MAGIC, _LENGTH.pack(len(head)), head, self.blob or b""))

    @classmethod
    def from_packed(cls, packed: bytes) -> Message:
        """Read a message."""
        at = len(_MAGIC) + _LENGTH.size
        end = at + _LENGTH.unpack_from(packed, len(_MAGIC))[0]
        told = json.loads(packed[at:end])
        return cls(told["stage"], told["kind"], packed[end:] or None, told["measured"])


def is_message(blob: bytes) -> bool:
    """Whether a blob that was sent is a message."""
    return blob[: len(_MAGIC)] == _MAGIC


def is_before(table: pa.Table) -> bool:
    """Whether rows that were sent came before the watermark that their stage forwards."""
    return _BEFORE in (table.schema.metadata or {})


def reached_before(table: pa.Table) -> int:
    """Return the watermark before, in Spark's milliseconds, of rows that are; 0: there was none."""
    return int(table.schema.metadata[_BEFORE])


def before(table: pa.Table, reached_ms: int) -> pa.Table:
    """Return rows that came before the watermark of a micro-batch, after another one."""
    told = {**(table.schema.metadata or {}), _BEFORE: str(reached_ms).encode()}
    return table.replace_schema_metadata(told)


def rows_of(messages: Iterable[bytes], stages: Sequence[str]) -> Iterator[pd.DataFrame]:
    """Yield messages as rows of the physical output.

    Parameters
    ----------
    messages : iterable of bytes
    stages : sequence of str
        The earlier stages, in order.
    """
    found = [Message.from_packed(each) for each in messages]
    for measured in (False, True):
        some = [each for each in found if (each.measured is not None) is measured]
        for few in by_bytes(some, lambda each: len(each.blob or b"")):
            kinds = [kind_of(stages.index(each.stage), each.kind) for each in few]
            values = [_as_measured(each.measured) for each in few]
            yield frame_of(kinds, [each.blob for each in few], values)


def kind_of(stage: int, kind: int) -> int:
    """Return the kind of a row of an earlier stage, by its place, in the last one's output."""
    return (stage + 1) * STRIDE + kind


def _as_measured(values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if values is None else {**values, USER: dict(values[USER])}


@dataclass(frozen=True)
class Forward:
    """The output of a stage to the rows of the next one, and messages.

    Parameters
    ----------
    stage : str
    keep : bool
        Whether results are messages, too.
    schema : pyarrow.Schema
        Of the results.
    before : tuple of str
        The earlier stages, in order.
    """

    stage: str
    keep: bool
    schema: pa.Schema
    before: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task."""
        spare_modules()
        schema = pa.schema([*self._nullable, _FIELD])
        for batch in batches:
            messages: list[bytes] = []
            for table in gather(self._rows(batch, messages), _ROWS):
                yield from table.to_batches()
            for some in by_bytes(messages, len):
                nothing = [pa.nulls(len(some), field.type) for field in self.schema]
                yield pa.record_batch([*nothing, pa.array(some, pa.binary())], schema=schema)

    @property
    def _nullable(self) -> pa.Schema:
        return nullable(self.schema)

    def _rows(self, batch: pa.RecordBatch, messages: list[bytes]) -> Iterator[pa.RecordBatch]:
        """Yield results, and note the messages."""
        kinds, blobs, measured = (column.to_pylist() for column in batch.columns)
        for kind, blob, values in zip(kinds, blobs, measured, strict=True):
            is_result = kind in (RESULT, AFTER)
            if is_result:
                yield from self._unpacked(blob, kind)
            if not is_result or self.keep:
                messages.append(self._message(kind, blob, values).packed)

    def _unpacked(self, blob: bytes, kind: int) -> list[pa.RecordBatch]:
        found = from_ipc(blob)
        reached = None if kind == AFTER else _REACHED.type(reached_before(found)).tobytes()
        table = found.select(self.schema.names).cast(self._nullable)
        carried = pa.repeat(pa.scalar(reached, pa.binary()), len(table))
        return table.append_column(_FIELD, carried).to_batches()  # type: ignore[no-any-return]

    def _message(self, kind: int, blob: bytes | None, values: Mapping[str, Any] | None) -> Message:
        stage = kind // STRIDE if kind != AFTER else 0
        name = self.before[stage - 1] if stage else self.stage
        return Message(name, RESULT if kind == AFTER else kind % STRIDE, blob, values)


def nullable(schema: pa.Schema) -> pa.Schema:
    """Return the columns, all of which may be null."""
    return pa.schema([field.with_nullable(True) for field in schema])


def are_rows(table: pa.Table) -> pa.ChunkedArray:
    """Return which rows of a table with `CARRIED` are no messages."""
    length = pc.fill_null(pc.binary_length(table[CARRIED]), 0)
    return pc.less_equal(length, REACHED_BYTES)


def parted(tables: Iterable[pa.Table], messages: list[bytes]) -> Iterator[pa.Table]:
    """Yield the rows in tables with `CARRIED`, by when they came, without it; note the messages."""
    for table in tables:
        carried, rows = table[CARRIED], table.drop_columns([CARRIED])
        length = pc.binary_length(carried)
        is_before = pc.equal(length, REACHED_BYTES)
        messages += carried.filter(pc.greater(length, REACHED_BYTES)).to_pylist()
        yield from (each for each in (rows.filter(pc.is_null(length)),) if len(each))
        if len(first := rows.filter(is_before)):
            reached = np.frombuffer(b"".join(carried.filter(is_before).to_pylist()), _REACHED)
            yield before(first, int(reached.max()))


def sent(messages: Sequence[bytes], shards: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """Yield messages as blobs, for one shard after another."""
    if messages:
        from pyspark import TaskContext  # elsewhere a shard runs without Spark

        context = TaskContext.get()
        first = 0 if context is None else context.partitionId()
        for number, some in enumerate(by_bytes(messages, len), first):
            ids = pa.repeat(pa.scalar(shards[number % len(shards)], pa.int64()), len(some))
            yield pa.record_batch([ids, pa.array(some, pa.binary())], schema=PACKED)
