"""What one shard reads from and writes to its state in each micro-batch, without Spark."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import pyarrow as pa

from benchmarks.data import START
from gpu_windows.operators.state.store import MemoryStore
from gpu_windows.planning.plan import Plan
from gpu_windows.spark_glue.micro_batch import Shard
from gpu_windows.spark_glue.times import END_MS

Operation = Literal["read", "write", "remove"]
#: What a shard does one after the other: it takes up what says how its state lies, takes rows (and
#: fires), puts its state away.
Phase = Literal["restoring", "taking", "saving"]
PHASES: tuple[Phase, ...] = get_args(Phase)
OPERATIONS: tuple[Operation, ...] = get_args(Operation)

#: Milliseconds of event time at which the watermark about stays: no window has ended then.
_HELD_MS = START // 1_000


class Access(NamedTuple):
    """What the calls of a store are counted by."""

    phase: Phase
    operation: Operation
    kind: str


@dataclass(frozen=True)
class Traffic:
    """Calls of a store, and bytes read or written in them.

    Parameters
    ----------
    calls, bytes : mapping of Access to int
    """

    calls: Mapping[Access, int]
    bytes: Mapping[Access, int]

    def calls_of(self, operation: Operation, kind: str | None = None) -> int:
        """Return the number of calls, of a kind of table or of all."""
        return _sum(self.calls, operation, kind)

    def bytes_of(self, operation: Operation, kind: str | None = None) -> int:
        """Return the bytes of blobs, of a kind of table or of all."""
        return _sum(self.bytes, operation, kind)

    def read_while(self, phase: Phase) -> int:
        """Return the bytes that were read in a phase."""
        return sum(
            n for at, n in self.bytes.items() if at.phase == phase and at.operation == "read"
        )

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of tables that were asked for."""
        return frozenset(access.kind for access in self.calls)


def _sum(counts: Mapping[Access, int], operation: Operation, kind: str | None) -> int:
    of_kind = (
        n for at, n in counts.items() if at.operation == operation and kind in (None, at.kind)
    )
    return sum(of_kind)


class Tally(MemoryStore):
    """A store in memory that counts its calls and the bytes that they carry.

    Attributes
    ----------
    phase : {"restoring", "taking", "saving"}
        What the shard does at present.
    """

    def __init__(self) -> None:
        super().__init__()
        self.phase: Phase = "restoring"
        self._calls: Counter[Access] = Counter()
        self._bytes: Counter[Access] = Counter()

    def read(self, kind: str, bucket: int) -> bytes | None:
        """Return a blob, or None."""
        blob = super().read(kind, bucket)
        self._count("read", kind, 0 if blob is None else len(blob))
        return blob

    def write(self, kind: str, bucket: int, blob: bytes, *, held: int | None = None) -> None:
        """Keep a blob."""
        self._count("write", kind, len(blob))
        super().write(kind, bucket, blob, held=held)

    def remove(self, kind: str, bucket: int, *, held: int | None = None) -> None:
        """Forget a blob."""
        self._count("remove", kind, 0)
        super().remove(kind, bucket, held=held)

    def _count(self, operation: Operation, kind: str, size: int) -> None:
        access = Access(self.phase, operation, kind)
        self._calls[access] += 1
        self._bytes[access] += size

    def taken(self) -> Traffic:
        """Return what was counted since the last call."""
        traffic = Traffic(self._calls, self._bytes)
        self._calls, self._bytes = Counter(), Counter()
        return traffic

    @property
    def held_bytes(self) -> int:
        """Bytes of all blobs."""
        return sum(map(len, self.blobs.values()))


@dataclass(frozen=True)
class Cost:
    """What a micro-batch took.

    Parameters
    ----------
    cpu_s : float
        Processor seconds.
    traffic : Traffic
    results : int
        Rows that it gave.
    touched_keys, touched_bytes : int
        Keys that its rows are of, and the bytes of the entries that they touch.
    """

    cpu_s: float
    traffic: Traffic
    results: int
    touched_keys: int = 0
    touched_bytes: int = 0


class ShardWork:
    """A shard of a plan that is given micro-batches; nothing fires in time before the end.

    Parameters
    ----------
    plan : Plan
        Of a stream on Spark.
    """

    def __init__(self, plan: Plan) -> None:
        self.store = Tally()
        self._shard = Shard(plan)
        self._given = 0

    def micro_batch(self, table: pa.Table) -> Cost:
        """Give it rows; the watermark moves by a millisecond."""
        return self._run([table], _HELD_MS + self._given)

    def end(self) -> Cost:
        """Let time end: everything fires that waits for event time."""
        return self._run([], END_MS)

    def _run(self, tables: Sequence[pa.Table], watermark_ms: int) -> Cost:
        results = 0
        began = time.process_time()
        with self._in("restoring"):
            batch = self._shard.begin(self.store, now_ms=_HELD_MS, watermark_ms=watermark_ms)
        with self._in("taking"):
            for emission in batch.emissions(tables):
                results += len(emission.results)
        with self._in("saving"):
            batch.finish()
        self._given += 1
        return Cost(time.process_time() - began, self.store.taken(), results)

    @contextmanager
    def _in(self, phase: Phase) -> Iterator[None]:
        self.store.phase = phase
        yield
