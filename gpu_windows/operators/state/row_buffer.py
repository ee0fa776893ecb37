"""Rows in a log by key prefix and time: a call appends new rows, and finds or consumes stored ones.

Rows are sorted by the prefix of the hash of their key, or only by time. The rows of a prefix
between two times are in a few blocks of each run, however many rows it has. Rows expire up to a
time, or are consumed one by one; a run records that time, and the number of consumed rows. A run
whose rows have all expired is deleted unread.

Sorted by time: partials of slices, rows of windows that fire once, at their end, and buffered rows
of OVER and patterns. Sorted by key and time: the sides of interval joins, rows that later frames
need, and rows of sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.block_index import BlockIndex
from gpu_windows.operators.state.buffer_spec import BufferSpec
from gpu_windows.operators.state.large_strings import take_rows
from gpu_windows.operators.state.log import LogTable, StateLog
from gpu_windows.operators.state.merge_input import MergeInput
from gpu_windows.operators.state.runs import Block, Run
from gpu_windows.operators.state.schemas import NOTHING, add_missing, concat_rows
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: Bytes in memory of a block, about, and of a large one at most.
_BLOCK_BYTES, _LARGE_BYTES = 24_000, 1 << 20
#: For rows that are read in order of time: blocks per run, about, and minimum bytes of one.
_BLOCKS_IN_ORDER, _ORDERED_BYTES = 16, 1 << 16
#: Up to this number of blocks, a call that reads most of them may still touch few rows.
_FEW_BLOCKS = 32
#: Due blocks that are read at once, about.
_DUE_BLOCKS = 2_000
#: Bytes in files that are read at once, about, where few rows are selected.
_PART_BYTES = 1 << 24
#: Bytes in memory that become one in a file, about.
_COMPRESSION = 3


class RowBuffer(LogTable):
    """The rows of a table.

    Parameters
    ----------
    log : StateLog
    name : str
    spec : BufferSpec
    lacking : pyarrow.Schema
        Columns that state of earlier starts may lack; they are null there.
    """

    def __init__(
        self, log: StateLog, name: str, spec: BufferSpec, lacking: pa.Schema = NOTHING
    ) -> None:
        super().__init__(log, name)
        self.spec, self._lacking = spec, lacking
        self._new: list[pa.Table] = []  # unflushed rows, which are in no run yet
        self._block_count = 0  # of the runs that a call has read from
        self._blocks_read: dict[tuple[str, int], set[int]] = {}
        self._times_read: dict[tuple[str, int], tuple[Ints, int]] = {}  # see `_first_after`
        self._wanted: Callable[[pa.Table], Flags] | None = None

    def __len__(self) -> int:
        """Return the number of rows, maybe including expired ones."""
        markers = sum(int(np.count_nonzero(self.spec.are_markers(rows))) for rows in self._new)
        return sum(run.rows for run in self.runs) + sum(map(len, self._new)) - markers

    @property
    def last_times(self) -> list[int]:
        """The last time of each run and of the unflushed rows."""
        return [run.max_time for run in self.runs] + [
            int(self.spec.times(rows).max()) for rows in self._new if len(rows)
        ]

    @property
    def first_times(self) -> list[int]:
        """The first live time of each run, and the first time of the unflushed rows."""
        return [run.live_from for run in self.runs] + [
            int(self.spec.times(rows).min()) for rows in self._new if len(rows)
        ]

    # ---- reading

    def find(self, prefixes: Ints, first: Ints, last: Ints) -> pa.Table | None:
        """Return a superset of the rows of some prefixes within times.

        Parameters
        ----------
        prefixes, first, last : int64[k]
            Prefixes, and the first and the last time of each.

        Returns
        -------
        pyarrow.Table or None
            In the order in which they were appended; None if there are none.
        """
        if len(prefixes) == 0:
            return None
        stored = [rows for _, rows in self._find_stored(prefixes, first, last)]
        return _concat([*stored, *self._new])

    def take(
        self, prefixes: Ints, first: Ints, last: Ints, wanted: Callable[[pa.Table], Flags]
    ) -> pa.Table | None:
        """Consume the wanted ones of the rows that `find` would return; None if there are none.

        They must not be wanted again.
        """
        consumed = []
        for run, rows in [*self._find_stored(prefixes, first, last)]:
            selected = rows.filter(pa.array(wanted(rows)))
            changed = replace(run, consumed=run.consumed + len(selected))
            self.log.update_run(run, changed)
            consumed.append(selected)
            if changed.consumed == changed.rows:
                self.log.drop(changed)
        return _concat([rows for rows in consumed if len(rows)] + self._take_new(wanted))

    def _find_stored(
        self, prefixes: Ints, first: Ints, last: Ints
    ) -> Iterator[tuple[Run, pa.Table]]:
        """Yield runs, each with its rows in the result of `find`."""
        if len(prefixes) == 0:
            return
        begin, until = int(first.min()), int(last.max())
        order = np.argsort(prefixes)  # binary search is faster in order
        prefixes, first, last = prefixes[order], first[order], last[order]
        found = [
            (run, self.log.block_index(run).find_blocks(prefixes, first, last))
            for run in self.runs
            if run.live_from <= until and begin <= run.max_time
        ]
        self.log.fetch_blocks(found)
        for run, blocks in found:
            index = self.log.block_index(run)
            blocks_read = self._blocks_read.setdefault((run.file, run.begin), set())
            self._block_count += len(index) if not blocks_read else 0
            blocks_read.update(blocks.tolist())
            rows = self._load(run, blocks)
            if rows is not None:
                self._times_read[run.file, run.begin] = (
                    self.spec.times(rows),
                    _after(index, blocks),
                )
                yield run, rows

    def between(self, first: int, last: int) -> pa.Table | None:
        """Return the rows from one time to another, of a buffer by time alone; None without rows.

        They are in the order of runs, those of a run in order of time.
        """
        bounds = np.array([first]), np.array([last])
        found = self.find(np.zeros(1, np.int64), *bounds)
        if found is None:
            return None
        rows = self._filter_times(found, first, last)
        return rows if len(rows) else None

    def _filter_times(self, rows: pa.Table, first: int, last: int) -> pa.Table:
        times = self.spec.times(rows)
        return rows.filter(pa.array((times >= first) & (times <= last)))

    def bytes_between(self, first: int, last: int) -> int:
        """Return about how many bytes in memory the rows from one time to another have."""
        in_files = sum(
            int(self.log.block_index(run).sizes[blocks].sum())
            for run, blocks in self._blocks_between(first, last)
        )
        return in_files * _COMPRESSION + sum(int(rows.nbytes) for rows in self._new)

    def select_between(
        self, first: int, last: int, select: Callable[[pa.Table], Flags]
    ) -> pa.Table | None:
        """Return the selected ones of the rows that `between` returns.

        Only a few blocks are in memory at once, whatever lies between the times.
        """

        def select_from(rows: pa.Table) -> pa.Table:
            rows = self._filter_times(rows, first, last)
            return rows.filter(pa.array(select(rows))) if len(rows) else rows

        found, due = [], [*self._blocks_between(first, last)]
        self.log.fetch_blocks(due)
        for run, blocks in due:
            sizes = np.cumsum(self.log.block_index(run).sizes[blocks])
            cuts = np.searchsorted(sizes, np.arange(_PART_BYTES, int(sizes[-1]), _PART_BYTES))
            loaded = (self._load(run, part) for part in np.split(blocks, np.unique(cuts)))
            found += [select_from(rows) for rows in loaded if rows is not None]
        found += [select_from(rows) for rows in self._new]
        return _concat([rows for rows in found if len(rows)])

    def _blocks_between(self, first: int, last: int) -> Iterator[tuple[Run, Ints]]:
        """Yield the runs with rows from one time to another, and their blocks."""
        place, bounds = np.zeros(1, np.int64), (np.array([first]), np.array([last]))
        for run in self.runs:
            if run.live_from <= last and first <= run.max_time:
                blocks = self.log.block_index(run).find_blocks(place, *bounds)
                if len(blocks):
                    yield run, blocks

    def take_due(self, until: int) -> Iterator[pa.Table]:
        """Yield all rows up to a time, of a buffer by time alone, and expire them.

        They come in parts, in order of time.
        """
        due = [self.log.block_index(run).time for run in self.runs if run.live_from <= until]
        begins = np.sort(np.concatenate([np.empty(0, np.int64), *due]))
        steps = begins[_DUE_BLOCKS::_DUE_BLOCKS]
        for step in [*np.unique(steps[steps < until]).tolist(), until]:
            rows = _concat([*self._take_due_stored(step), *self._take_new(self._are_due(step))])
            if rows is not None:
                yield rows

    def _take_due_stored(self, until: int) -> list[pa.Table]:
        found, at = [], np.zeros(1, np.int64)
        due = [run for run in self.runs if run.live_from <= until]
        bounds = [(np.array([run.live_from]), np.array([until])) for run in due]
        indexes = [self.log.block_index(run) for run in due]
        blocks = [each.find_blocks(at, *times) for each, times in zip(indexes, bounds, strict=True)]
        self.log.fetch_blocks(zip(due, blocks, strict=True))
        for run, index, numbers in zip(due, indexes, blocks, strict=True):
            rows = self._load(run, numbers)
            assert rows is not None, "a run has a row at its first live time"
            times = self.spec.times(rows)
            later = int(times[times > until].min(initial=_after(index, numbers)))
            found.append(rows.filter(pa.array(times <= until)))
            if run.max_time <= until:
                self.log.drop(run)
            else:
                self.log.update_run(run, replace(run, live_from=later))
        return found

    def _are_due(self, until: int) -> Callable[[pa.Table], Flags]:
        return lambda rows: self.spec.times(rows) <= until

    def _take_new(self, wanted: Callable[[pa.Table], Flags]) -> list[pa.Table]:
        """Remove the wanted ones of the unflushed rows, and return them."""
        consumed, left = [], []
        for rows in self._new:
            flags = wanted(rows)
            consumed.append(rows.filter(pa.array(flags)))
            left.append(rows.filter(pa.array(~flags)))
        self._new = [rows for rows in left if len(rows)]
        return [rows for rows in consumed if len(rows)]

    def forget(self, until: int) -> None:
        """Expire the rows up to a time; runs that have no others are deleted unread."""
        for run in self.runs:
            if run.max_time <= until:
                self.log.drop(run)
            elif run.live_from <= until:
                later = self._first_after(run, until)
                self.log.update_run(run, replace(run, live_from=later))
        self._take_new(self._are_due(until))

    def _first_after(self, run: Run, until: int) -> int:
        """Return a lower bound of the times of a run's rows after a time.

        It is exact if `between` has read the rows up to that time.
        """
        times_read = self._times_read.get((run.file, run.begin))
        if times_read is None or not self.spec.in_order:
            return until + 1
        times, following = times_read
        return max(int(times[times > until].min(initial=following)), until + 1)

    def _load(self, run: Run, blocks: Ints) -> pa.Table | None:
        """Return the live rows of some blocks of a run; None for no blocks."""
        rows = _concat([tables[0] for tables in self.log.read_blocks(run, blocks)])
        if rows is None:
            return None
        rows = add_missing(rows, self._lacking)
        if run.live_from <= run.min_time:
            return rows
        return rows.filter(pa.array(self.spec.times(rows) >= run.live_from))

    # ---- writing

    @property
    def consumed_count(self) -> int:
        """Number of consumed rows that runs still contain."""
        return sum(run.consumed for run in self.runs)

    def append(self, rows: pa.Table) -> None:
        """Append rows, and markers that change earlier rows."""
        if len(rows):
            self._new.append(rows)

    def purge_except(self, wanted: Callable[[pa.Table], Flags]) -> None:
        """Request a full compaction that retains only the wanted rows."""
        self._wanted = wanted

    @property
    def needs_full_compaction(self) -> bool:
        """Whether `purge_except` was called since the last write."""
        return self._wanted is not None

    @property
    def new_bytes(self) -> int:
        """Bytes in memory of the unflushed rows; 1 if only a full compaction is needed."""
        return sum(max(rows.nbytes, 1) for rows in self._new) or int(self.needs_full_compaction)

    def before_finish(self) -> None:
        """Save the number of rows and their range of times."""
        self._set_numbers(len(self), self.first_times, self.last_times)

    def count_written(self, runs: Sequence[Run]) -> None:
        """Save the same after the write: compaction may have dropped rows."""
        first, last = [run.live_from for run in runs], [run.max_time for run in runs]
        self._set_numbers(sum(run.rows for run in runs), first, last)

    def _set_numbers(
        self, rows: int, first_times: Sequence[int], last_times: Sequence[int]
    ) -> None:
        numbers = {"rows": rows}
        if rows:
            bounds = self.spec.to_ticks(min(first_times), max(last_times))
            numbers |= dict(zip(("start", "end"), bounds, strict=True))
        self.log.set_numbers(self.name, numbers)

    def note_written(self) -> None:
        """Drop the unflushed rows, which are in a run now."""
        self._new, self._wanted = [], None
        self._block_count, self._blocks_read, self._times_read = 0, {}, {}

    def merge(self, runs: Sequence[Run], *, with_new: bool, are_oldest: bool) -> Iterator[Block]:
        """Compact runs, followed by the unflushed rows; see `LogTable.merge`."""
        new = self._new if with_new else []
        size = sum(run.size for run in runs) * _COMPRESSION + sum(rows.nbytes for rows in new)
        block_bytes = self._block_bytes(size)
        merged = MergeInput(self.log, self.spec, runs, new, self._lacking, self._load)
        is_one = len(runs) + len(new) == 1 and self.log.rescaling is None
        for rows, is_whole in merged.parts():
            if len(rows) and not is_one:
                rows = self.spec.compact(rows, are_oldest=are_oldest and is_whole)
            yield from self._to_blocks(self._select_wanted(rows), block_bytes)

    def _select_wanted(self, rows: pa.Table) -> pa.Table:
        """Return the rows that were not consumed, and that belong to this shard."""
        if self._wanted is not None:
            rows = rows.filter(pa.array(self._wanted(rows)))
        if self.log.rescaling is not None:
            rows = rows.filter(pa.array(self.log.rescaling.select(rows, self.spec.key_columns)))
            rows = self.log.rescaling.shift(rows, self.spec.numbers)
        return rows

    def _to_blocks(self, rows: pa.Table, block_bytes: int) -> Iterator[Block]:
        """Yield rows as blocks."""
        if len(rows) == 0:
            return
        prefixes, times = self.spec.prefixes(rows), self.spec.times(rows)
        order = np.lexsort((times, prefixes))
        rows = take_rows(rows, order).combine_chunks()
        prefixes, times, markers = prefixes[order], times[order], self.spec.are_markers(rows)
        length = max(1, len(rows) * block_bytes // max(rows.nbytes, 1))
        for begin in range(0, len(rows), length):
            part = slice(begin, begin + length)
            count = int(np.count_nonzero(markers[part]))
            yield Block(
                prefix=int(prefixes[begin]),
                time=int(times[begin]),
                tables=(rows.slice(begin, length),),
                rows=len(times[part]) - count,
                markers=count,
                min_time=int(times[part].min()),
                max_time=int(times[part].max()),
            )

    def _block_bytes(self, size: int) -> int:
        """Return about how many bytes in memory a block has, for a run of ``size`` bytes.

        Blocks are large if rows are read in order of time only, or if this call has read more than
        half of all blocks.
        """
        blocks_read = sum(map(len, self._blocks_read.values()))
        is_scan = self.spec.adapts and 2 * blocks_read > max(self._block_count, _FEW_BLOCKS)
        if not self.spec.in_order and not is_scan:
            return _BLOCK_BYTES
        return max(_ORDERED_BYTES, min(size // _BLOCKS_IN_ORDER, _LARGE_BYTES))


def _after(index: BlockIndex, blocks: Ints) -> int:
    """Return the first time of the block after the last of some, or LONG_MAX."""
    end = int(blocks[-1]) + 1
    return LONG_MAX if end == len(index) else int(index.time[end])


def _concat(tables: Sequence[pa.Table]) -> pa.Table | None:
    """Concatenate tables as `concat_rows` does; None for no tables."""
    return concat_rows(tables) if tables else None
