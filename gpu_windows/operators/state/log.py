"""The state of a shard: a log-structured store. Each micro-batch writes one state file of runs.

::

    magic, version
    runs             blocks, the filter of their keys, their block index; see `runs`
    manifest         all live runs, of this file and of earlier ones, and numbers; see `manifest`

A table of an operator (`KeyedTable`, `RowBuffer`) is its runs, from the oldest to the newest; runs
that were written together are a *segment*. A micro-batch writes one file: its new segment, and the
segments that it compacts. Compaction is size-tiered: `MERGE_FANIN` neighbours in age of the same
size class become one. If more than half of the bytes of all files have expired, the segments of the
emptiest files are rewritten. So files stay few, and a byte is rewritten a few times in its life.
Nothing is written before `finish`: a call that fails leaves no trace.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.errors import StateCorruptedError
from gpu_windows.operators.state.block_index import BlockIndex
from gpu_windows.operators.state.files import StateFiles
from gpu_windows.operators.state.frames import unpack_batches
from gpu_windows.operators.state.manifest import (
    HEADER,
    Manifest,
    Segment,
    missing_file,
    read_manifest,
)
from gpu_windows.operators.state.rescaling import Rescaling
from gpu_windows.operators.state.runs import Run
from gpu_windows.operators.state.schemas import conform, with_types
from gpu_windows.operators.state.state_file_writer import StateFileWriter
from gpu_windows.operators.state.writable_table import WritableTable

Ints = NDArray[np.int64]

#: The first key column of entries, and the pattern of columns of entries that a plan names.
_FIRST_KEY, _IN_ENTRIES = "key0", re.compile(r"key\d+$|__p[0-9a-f]+")
#: Bytes of a run up to which it is read at once, block index and all; and of the filter of a run up
#: to which it is fetched with the block index.
_SMALL_RUN, _SMALL_FILTER = 1 << 15, 1 << 18


class StateLog:
    """The state of a shard.

    Parameters
    ----------
    files : StateFiles
    newest : str, optional
        Name of the newest state file of the shard; None: it has no state yet.

    Raises
    ------
    StateCorruptedError, StateVersionError
        If that file is damaged, or of another version.
    """

    def __init__(self, files: StateFiles, newest: str | None = None) -> None:
        self.files, self.newest = files, newest
        self._manifest = Manifest() if newest is None else read_manifest(files, newest)
        self._begin()
        #: Current types of columns; columns are read in these if they have the same values.
        self.types: Mapping[str, pa.DataType] = {}
        #: Set while state moves to another number of shards.
        self.rescaling: Rescaling | None = None
        #: Nanoseconds in which files were read and written.
        self.waited_ns = 0

    def _begin(self) -> None:
        self._segments: list[Segment] = [dict(each) for each in self._manifest.segments]
        #: Numbers, by owner and name.
        self.saved_numbers = {owner: dict(each) for owner, each in self._manifest.numbers.items()}
        #: The registered tables, by name, in the order in which `finish` writes them.
        self.tables: dict[str, WritableTable] = {}
        self._block_indexes: dict[tuple[str, int], BlockIndex] = {}
        self._stored_schemas: dict[tuple[str, int], tuple[pa.Schema, ...]] = {}
        self._small: dict[tuple[str, int], bytes] = {}
        self._has_fetched = False  # block indexes

    def reopen(self) -> StateLog:
        """Return the log for an operator that resumes from it."""
        return self

    # ---- tables and numbers

    def register(self, table: WritableTable) -> None:
        """Add a table, which `finish` writes."""
        self.tables[table.name] = table

    def numbers(self, owner: str, names: Sequence[str]) -> list[int] | None:
        """Return the saved numbers of an owner, by name; None if the log has no state.

        Raises
        ------
        StateCorruptedError
            If one is missing: the state is of another operator.
        """
        saved = self.saved_numbers.get(owner)
        if saved is None and self.newest is None:
            return None
        missing = [name for name in names if saved is None or name not in saved]
        if saved is None or missing:
            rule = "the state of a shard has the numbers that its operator asks for"
            raise StateCorruptedError(rule, value=f"no {', '.join(missing)} of {owner}")
        return [saved[name] for name in names]

    def all_numbers(self, owner: str) -> dict[str, int]:
        """Return all saved numbers of an owner, by name; empty if it has none."""
        return dict(self.saved_numbers.get(owner, {}))

    def set_numbers(self, owner: str, numbers: Mapping[str, int]) -> None:
        """Replace the saved numbers of an owner."""
        self.saved_numbers[owner] = {name: int(number) for name, number in numbers.items()}

    def runs(self, table: str) -> list[Run]:
        """Return the live runs of a table, from the oldest on."""
        return [each[table] for each in self._segments if table in each]

    @property
    def table_names(self) -> list[str]:
        """Names of the tables that have runs."""
        return list(dict.fromkeys(name for each in self._segments for name in each))

    @property
    def live_size(self) -> int:
        """Bytes of all live runs."""
        return sum(run.size for run in self._all_runs())

    def _all_runs(self) -> Iterator[Run]:
        return (run for each in self._segments for run in each.values())

    def drop(self, run: Run) -> None:
        """Delete a run."""
        del self._segment_of(run)[run.table]

    def _segment_of(self, run: Run) -> Segment:
        for segment in self._segments:
            if segment.get(run.table) is run:
                return segment
        raise ValueError(f"there is no such run of {run.table}")

    def update_run(self, run: Run, changed: Run) -> None:
        """Record that rows of a run have expired or were consumed."""
        self._segment_of(run)[run.table] = changed

    # ---- reading

    def block_index(self, run: Run) -> BlockIndex:
        """Return the block index of a run.

        Raises
        ------
        StateCorruptedError
            If its file is missing or damaged.
        """
        at = run.file, run.begin
        if at not in self._block_indexes:
            self._fetch_block_indexes()
            if run.size <= _SMALL_RUN:
                (whole,) = self._read(run.file, [(run.begin, run.size)])
                self._small[at] = whole
                frame = memoryview(whole)[run.index - run.begin :]
            else:
                (data,) = self._read(run.file, [(run.index, run.end - run.index)])
                frame = memoryview(data)
            index = BlockIndex.from_frame(frame, _name(run))
            self._stored_schemas[at] = index.schemas
            now = tuple(with_types(schema, self._types_in(schema)) for schema in index.schemas)
            self._block_indexes[at] = replace(index, schemas=now)
        return self._block_indexes[at]

    def _types_in(self, schema: pa.Schema) -> Mapping[str, pa.DataType]:
        """Return the current types that apply to a table.

        Entries of keys have columns of their own, and columns of the input may have the same names.
        """
        if _FIRST_KEY not in schema.names:
            return self.types
        return {name: now for name, now in self.types.items() if _IN_ENTRIES.match(name)}

    def read_blocks(self, run: Run, blocks: Ints) -> list[tuple[pa.Table, ...]]:
        """Return some blocks of a run, by their numbers, ascending.

        Raises
        ------
        StateCorruptedError
            If the file of the run is missing or damaged.
        """
        if len(blocks) == 0:
            return []
        index = self.block_index(run)
        begins = index.begins
        small = self._small.get((run.file, run.begin))
        if small is not None:
            data: list[bytes | memoryview] = [
                memoryview(small)[begins[block] : begins[block + 1]] for block in blocks.tolist()
            ]
        else:
            data = [*self._read_neighbours(run, begins, blocks)]
        stored = self._stored_schemas[run.file, run.begin]
        found = [unpack_batches(each, stored, _name(run)) for each in data]
        if stored == index.schemas:
            return found
        return [tuple(map(conform, tables, index.schemas)) for tables in found]

    def _read_neighbours(self, run: Run, begins: Ints, blocks: Ints) -> Iterator[memoryview]:
        """Yield blocks; adjacent ones are read at once."""
        firsts, lasts = _neighbours(blocks)
        low, ranges = begins[blocks[firsts]], _ranges(run, begins, blocks)
        for data, first, last, base in zip(
            self._read(run.file, ranges), firsts, lasts, low, strict=True
        ):
            view = memoryview(data)
            for block in blocks[first : last + 1].tolist():
                yield view[begins[block] - base : begins[block + 1] - base]

    def read_filter(self, run: Run, part: int) -> bytes:
        """Return a part of the filter of a run.

        Raises
        ------
        StateCorruptedError
            If the file of the run is missing.
        """
        (data,) = self._read(run.file, [self._filter_range(run, part)])
        return data

    def _filter_range(self, run: Run, part: int) -> tuple[int, int]:
        sizes = self.block_index(run).filters
        return run.filters + sum(sizes[:part]), sizes[part]

    def _read(self, file: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        with self._measure_wait(file):
            return self.files.read_ranges(file, ranges)

    def check_files(self) -> None:
        """Raise `StateCorruptedError` if a file that has live runs is missing."""
        header = 0, len(HEADER)
        self._prefetch((name, header) for name in self.live_files)
        for name in self.live_files:
            self._read(name, [header])

    @contextmanager
    def _measure_wait(self, file: str = "") -> Iterator[None]:
        """Count the time of reading; convert the error of a missing file."""
        began = time.perf_counter_ns()
        try:
            yield
        except FileNotFoundError as error:
            raise missing_file(file or str(error.filename)) from error
        finally:
            self.waited_ns += time.perf_counter_ns() - began

    # ---- prefetching: one round of requests to a store for all that is read next

    def fetch_blocks(self, blocks: Iterable[tuple[Run, Ints]]) -> None:
        """Prefetch blocks of several runs, if files are in a store.

        Parameters
        ----------
        blocks : iterable of (Run, int64[k])
            Runs, and numbers of their blocks, ascending. Not consumed if files are on a disk.

        Raises
        ------
        StateCorruptedError
            If a file is missing.
        """
        self._prefetch(
            (run.file, each)
            for run, numbers in blocks
            if len(numbers) and (run.file, run.begin) not in self._small
            for each in _ranges(run, self.block_index(run).begins, numbers)
        )

    def fetch_filters(self, parts: Iterable[tuple[Run, Iterable[int]]]) -> None:
        """Prefetch parts of the key filters of several runs; see `fetch_blocks`."""
        self._prefetch(
            (run.file, self._filter_range(run, part)) for run, numbers in parts for part in numbers
        )

    def _fetch_block_indexes(self) -> None:
        """Prefetch the block indexes of all tables, with small filters."""
        if not self._has_fetched:
            self._has_fetched = True
            self._prefetch(map(_index_range, self._all_runs()))

    def _prefetch(self, ranges: Iterable[tuple[str, tuple[int, int]]]) -> None:
        if not self.files.is_remote:
            return
        every: dict[str, list[tuple[int, int]]] = {}
        for file, each in ranges:
            every.setdefault(file, []).append(each)
        if every:
            with self._measure_wait():
                self.files.prefetch(every)

    # ---- writing

    @property
    def live_files(self) -> tuple[str, ...]:
        """Names of the files that a commit of this state needs, including the newest one."""
        files = dict.fromkeys(run.file for run in self._all_runs())
        return tuple(dict.fromkeys((*files, *(() if self.newest is None else (self.newest,)))))

    def finish(self, name: str) -> str | None:
        """Write all changes to a state file; return the name of the newest one.

        Parameters
        ----------
        name : str
            Name of the file, unique to this attempt. Not used if nothing has changed.

        Raises
        ------
        OSError
        """
        for table in self.tables.values():
            table.before_finish()
        new_bytes = sum(table.new_bytes for table in self.tables.values())
        before = self._manifest
        segments = [each for each in self._segments if each]
        is_same = segments == [*before.segments] and self.saved_numbers == before.numbers
        if not new_bytes and is_same:
            return self.newest
        began = time.perf_counter_ns()
        latest = Manifest(segments, before.sizes, self.saved_numbers)
        file = StateFileWriter(name, self.tables, latest, segments, new_bytes)
        self.files.write(name, file.parts())
        self.waited_ns += time.perf_counter_ns() - began
        for table in self.tables.values():
            table.note_written()
        self._manifest, self.newest = file.manifest, name
        self._segments = [dict(each) for each in self._manifest.segments]
        self._block_indexes.clear()
        self._stored_schemas.clear()
        self._small.clear()
        return name


class LogTable(WritableTable):
    """Base class of the tables of a log: it reads its runs from the log that writes it."""

    def __init__(self, log: StateLog, name: str) -> None:
        self.log, self.name = log, name
        log.register(self)

    @property
    def runs(self) -> list[Run]:
        """Its live runs, oldest first."""
        return self.log.runs(self.name)


def _neighbours(blocks: Ints) -> tuple[Ints, Ints]:
    """Return the indices of the first and the last block of each group of adjacent ones."""
    firsts = np.flatnonzero(np.diff(blocks, prepend=-2) != 1)
    return firsts, np.append(firsts[1:], len(blocks)) - 1


def _ranges(run: Run, begins: Ints, blocks: Ints) -> list[tuple[int, int]]:
    """Return the byte ranges of some blocks in their file; adjacent blocks share one."""
    firsts, lasts = _neighbours(blocks)
    low, high = begins[blocks[firsts]], begins[blocks[lasts] + 1]
    return [*zip((run.begin + low).tolist(), (high - low).tolist(), strict=True)]


def _index_range(run: Run) -> tuple[str, tuple[int, int]]:
    """Return the file of a run, and the range to fetch before its block index is known."""
    begin = run.filters if run.index - run.filters <= _SMALL_FILTER else run.index
    begin = run.begin if run.size <= _SMALL_RUN else begin
    return run.file, (begin, run.end - begin)


def _name(run: Run) -> str:
    return f"{run.table} in {run.file}"
