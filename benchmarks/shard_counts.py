"""Counts what a shard reads from and writes to its state: calls of its store, and bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO, Literal, NamedTuple, cast, get_args

from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpointing.shard_log import ShardLog
from gpu_windows.operators.state.store import MemoryStore

Operation = Literal["read", "write", "remove"]
#: What a shard does one after the other: it takes up what says how its state lies, takes rows (and
#: fires), puts its state away.
Phase = Literal["restoring", "taking", "saving"]
PHASES: tuple[Phase, ...] = get_args(Phase)
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
#: Bytes of state files that are of no table: what a file has besides blobs; and blobs that are read
#: because they move into the next file.
DIRECTORY, MOVED = "(directory)", "(moved)"


class Access(NamedTuple):
    """What is counted by."""

    phase: Phase
    operation: Operation
    kind: str


@dataclass(frozen=True)
class Traffic:
    """Calls of a store, and bytes that were read or written.

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
        """Return the bytes, of a kind of table or of all."""
        return _sum(self.bytes, operation, kind)

    def read_while(self, phase: Phase) -> int:
        """Return the bytes that were read in a phase."""
        return sum(
            n for at, n in self.bytes.items() if at.phase == phase and at.operation == "read"
        )

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of tables that were asked for, with `DIRECTORY` and `MOVED`."""
        return frozenset(access.kind for access in (*self.calls, *self.bytes))


def _sum(counts: Mapping[Access, int], operation: Operation, kind: str | None) -> int:
    of_kind = (
        n for at, n in counts.items() if at.operation == operation and kind in (None, at.kind)
    )
    return sum(of_kind)


class Tally:
    """Counts calls and bytes.

    Attributes
    ----------
    phase : {"restoring", "taking", "saving"}
        What the shard does at present.
    """

    def __init__(self) -> None:
        self.phase: Phase = "restoring"
        self._calls: Counter[Access] = Counter()
        self._bytes: Counter[Access] = Counter()

    def add_call(self, operation: Operation, kind: str) -> None:
        """Count a call of the store."""
        self._calls[Access(self.phase, operation, kind)] += 1

    def add_bytes(self, operation: Operation, kind: str, size: int) -> None:
        """Count bytes."""
        if size:
            self._bytes[Access(self.phase, operation, kind)] += size

    def take(self) -> Traffic:
        """Return what was counted since the last call."""
        traffic = Traffic(self._calls, self._bytes)
        self._calls, self._bytes = Counter(), Counter()
        return traffic


class CountingStore(MemoryStore):
    """A store in memory: bytes are those of blobs."""

    def __init__(self) -> None:
        super().__init__()
        self.tally = Tally()

    def read(self, kind: str, bucket: int) -> bytes | None:
        """Return a blob, or None."""
        blob = super().read(kind, bucket)
        self.tally.add_call("read", kind)
        self.tally.add_bytes("read", kind, 0 if blob is None else len(blob))
        return blob

    def write(self, kind: str, bucket: int, blob: bytes, *, held: int | None = None) -> None:
        """Keep a blob."""
        self.tally.add_call("write", kind)
        self.tally.add_bytes("write", kind, len(blob))
        super().write(kind, bucket, blob, held=held)

    def remove(self, kind: str, bucket: int, *, held: int | None = None) -> None:
        """Forget a blob."""
        self.tally.add_call("remove", kind)
        super().remove(kind, bucket, held=held)


@dataclass(frozen=True)
class CountingFiles(LocalFiles):
    """Files, with the bytes that were read from and written to them.

    Parameters
    ----------
    counts : collections.Counter
    """

    counts: Counter[Operation] = field(default_factory=Counter)

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        """Write a file."""
        super().write(name, self._counting(parts))

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Open a file to read ranges of it."""
        with super().open(name) as file:
            yield cast(BinaryIO, _CountingFile(file, self.counts))

    def _counting(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        for part in parts:
            self.counts["write"] += len(part)
            yield part


class _CountingFile:
    """A file that is read."""

    def __init__(self, file: BinaryIO, counts: Counter[Operation]) -> None:
        self.seek = file.seek
        self._file, self._counts = file, counts

    def read(self, size: int = -1) -> bytes:
        found = self._file.read(size)
        self._counts["read"] += len(found)
        return found


class CountingLog(ShardLog):
    """The state files of a shard: bytes are those of files, whatever they hold.

    Parameters
    ----------
    files : CountingFiles
    newest : str, optional
        See `ShardLog`.
    tally : Tally
    """

    def __init__(self, files: CountingFiles, newest: str | None, tally: Tally) -> None:
        self._counts, self._tally = files.counts, tally
        with self._reading(DIRECTORY):
            super().__init__(files, newest)

    def read(self, kind: str, bucket: int) -> bytes | None:
        """Return a blob, or None."""
        self._tally.add_call("read", kind)
        with self._reading(kind):
            return super().read(kind, bucket)

    def write(self, kind: str, bucket: int, blob: bytes, *, held: int | None = None) -> None:
        """Keep a blob."""
        self._tally.add_call("write", kind)
        super().write(kind, bucket, blob, held=held)

    def remove(self, kind: str, bucket: int, *, held: int | None = None) -> None:
        """Forget a blob."""
        self._tally.add_call("remove", kind)
        super().remove(kind, bucket, held=held)

    def finish(self, name: str) -> str | None:
        """Write what was changed into a state file."""
        before = self._counts["write"]
        with self._reading(MOVED):
            newest = super().finish(name)
        blobs: Counter[str] = Counter()
        for (kind, _), place in self.directory.places.items():
            if place.file == name:
                blobs[kind] += place.length
        for kind, size in blobs.items():
            self._tally.add_bytes("write", kind, size)
        self._tally.add_bytes("write", DIRECTORY, self._counts["write"] - before - blobs.total())
        return newest

    @contextmanager
    def _reading(self, kind: str) -> Iterator[None]:
        before = self._counts["read"]
        yield
        self._tally.add_bytes("read", kind, self._counts["read"] - before)
