"""Counts what a shard reads from and writes to its state files: ranges, files and bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from gpu_windows.operators.state.files import StateFiles
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.runs import Run

Operation = Literal["read", "write"]
#: What a shard does one after the other: it takes up what says how its state lies, takes rows (and
#: fires), puts its state away.
Phase = Literal["restoring", "taking", "saving"]
PHASES: tuple[Phase, ...] = get_args(Phase)
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
#: Bytes of state files that are of no table: what a file has besides runs.
MANIFEST = "(manifest)"


class Access(NamedTuple):
    """What is counted by."""

    phase: Phase
    operation: Operation
    table: str


@dataclass(frozen=True)
class Traffic:
    """Ranges and files, and bytes that were read or written.

    Parameters
    ----------
    calls, bytes : mapping of Access to int
    """

    calls: Mapping[Access, int]
    bytes: Mapping[Access, int]

    def calls_of(self, operation: Operation, table: str | None = None) -> int:
        """Return the number of calls, of a table or of all."""
        return _sum(self.calls, operation, table)

    def bytes_of(self, operation: Operation, table: str | None = None) -> int:
        """Return the bytes, of a table or of all."""
        return _sum(self.bytes, operation, table)

    def read_while(self, phase: Phase) -> int:
        """Return the bytes that were read in a phase."""
        return sum(
            n for at, n in self.bytes.items() if at.phase == phase and at.operation == "read"
        )

    @property
    def tables(self) -> frozenset[str]:
        """The tables that were read or written, with `MANIFEST`."""
        return frozenset(access.table for access in (*self.calls, *self.bytes))


def _sum(counts: Mapping[Access, int], operation: Operation, table: str | None) -> int:
    of_table = (
        n for at, n in counts.items() if at.operation == operation and table in (None, at.table)
    )
    return sum(of_table)


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

    def add_call(self, operation: Operation, table: str) -> None:
        """Count a range that is read, or a file that is written."""
        self._calls[Access(self.phase, operation, table)] += 1

    def add_bytes(self, operation: Operation, table: str, size: int) -> None:
        """Count bytes."""
        if size:
            self._bytes[Access(self.phase, operation, table)] += size

    def take(self) -> Traffic:
        """Return what was counted since the last call."""
        traffic = Traffic(self._calls, self._bytes)
        self._calls, self._bytes = Counter(), Counter()
        return traffic


class CountingLog(StateLog):
    """The state of a shard: bytes are those of files, with all that is in them.

    Parameters
    ----------
    files : StateFiles
    newest : str, optional
        See `StateLog`.
    tally : Tally
    """

    def __init__(self, files: StateFiles, newest: str | None, tally: Tally) -> None:
        self._tally, self._counting = tally, _CountingFiles(files, tally)
        super().__init__(self._counting, newest)
        self._counting.note_runs(self._live_runs())

    def finish(self, name: str) -> str | None:
        """Write what was changed into a state file."""
        self._counting.written = 0
        newest = super().finish(name)
        if self._counting.written:
            runs = [run for run in self._live_runs() if run.file == name]
            for run in runs:
                self._tally.add_bytes("write", run.table, run.size)
            rest = self._counting.written - sum(run.size for run in runs)
            self._tally.add_call("write", MANIFEST)
            self._tally.add_bytes("write", MANIFEST, rest)
        return newest

    def _live_runs(self) -> list[Run]:
        return [run for table in self.table_names for run in self.runs(table)]


class _CountingFiles:
    """Files, with the ranges and bytes that were read from and written to them."""

    def __init__(self, files: StateFiles, tally: Tally) -> None:
        self._files, self._tally = files, tally
        self._runs: list[Run] = []
        self.written = 0

    def note_runs(self, runs: list[Run]) -> None:
        """Note which runs there are to be read."""
        self._runs = runs

    @property
    def is_remote(self) -> bool:
        """Whether a request takes long."""
        return self._files.is_remote

    def prefetch(self, ranges: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        """Have ranges at hand."""
        self._files.prefetch(ranges)

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        """Write a file."""
        self._files.write(name, self._counted(parts))

    def _counted(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        for part in parts:
            self.written += len(part)
            yield part

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return ranges of a file."""
        data = self._files.read_ranges(name, ranges)
        for (offset, _), part in zip(ranges, data, strict=True):
            self._count_read(self._table_at(name, offset), part)
        return data

    def read_end(self, name: str, length: int) -> bytes:
        """Return the last bytes of a file."""
        data = self._files.read_end(name, length)
        self._count_read(MANIFEST, data)
        return data

    def _table_at(self, file: str, offset: int) -> str:
        tables = (r.table for r in self._runs if r.file == file and r.begin <= offset < r.end)
        return next(tables, MANIFEST)

    def _count_read(self, table: str, data: bytes) -> None:
        self._tally.add_call("read", table)
        self._tally.add_bytes("read", table, len(data))
