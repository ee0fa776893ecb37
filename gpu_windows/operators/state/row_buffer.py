"""Rows of a log by place and time: a call appends those that came, and finds or takes some again.

A place is of the hash of a key, or one for all rows. The rows of a place between two times are in a
few blocks of each run, however many rows the place has. Rows expire up to a time, or are taken: of
each run it is known up to when, and how many were. A run whose rows have all expired is dropped
unread.

By time it has partials of slices, rows of windows that fire once, at their end, and pending rows of
OVER and patterns. By key and time it has the sides of interval joins, rows that frames to come
need, and rows of sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.buffer_spec import BufferSpec
from gpu_windows.operators.state.directory import Directory
from gpu_windows.operators.state.large_strings import take_rows
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.log_table import LogTable
from gpu_windows.operators.state.merge_input import MergeInput
from gpu_windows.operators.state.runs import Block, Run
from gpu_windows.operators.state.schemas import NOTHING, add_missing, concat_rows
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: Bytes in memory of a block, about, and of a large one at most.
_BLOCK_BYTES, _LARGE_BYTES = 24_000, 1 << 20
#: Of rows that are read in order of time: blocks of a run, about, and bytes of one at least.
_BLOCKS_IN_ORDER, _ORDERED_BYTES = 16, 1 << 16
#: As many blocks are few: of them a call may read most and touch little.
_FEW_BLOCKS = 32
#: Blocks that are read at once, about, of those that are due.
_DUE_BLOCKS = 2_000
#: Bytes in memory that become one in a file, about.
_COMPRESSION = 3


class RowBuffer(LogTable):
    """The rows of a table.

    Parameters
    ----------
    log : StateLog
    name : str
    kind : BufferSpec
    lacking : pyarrow.Schema
        Columns that rows of earlier starts may lack: they are null there.
    """

    def __init__(
        self, log: StateLog, name: str, kind: BufferSpec, lacking: pa.Schema = NOTHING
    ) -> None:
        super().__init__(log, name)
        self.kind, self._lacking = kind, lacking
        self._new: list[pa.Table] = []  # rows that are in no run yet
        self._block_count = 0  # of the runs that a call has looked into
        self._asked: dict[tuple[str, int], set[int]] = {}  # blocks that it has asked for
        self._known_times: dict[tuple[str, int], tuple[Ints, int]] = {}  # see `between`
        self._wanted: Callable[[pa.Table], Flags] | None = None

    def __len__(self) -> int:
        """Return the number of rows, some that have expired too."""
        markers = sum(int(np.count_nonzero(self.kind.are_markers(rows))) for rows in self._new)
        return sum(run.rows for run in self.runs) + sum(map(len, self._new)) - markers

    @property
    def last_times(self) -> list[int]:
        """The last time of each run, and of the new rows."""
        return [run.greatest for run in self.runs] + [
            int(self.kind.times(rows).max()) for rows in self._new if len(rows)
        ]

    @property
    def first_times(self) -> list[int]:
        """The first time of each run that has not expired, and of the new rows."""
        return [run.since for run in self.runs] + [
            int(self.kind.times(rows).min()) for rows in self._new if len(rows)
        ]

    # ---- what a call needs

    def find(self, places: Ints, first: Ints, last: Ints) -> pa.Table | None:
        """Return the rows of some places within times, and some others beside them.

        Parameters
        ----------
        places, first, last : int64[k]
            Places, and the times from which on and up to which rows are asked for.

        Returns
        -------
        pyarrow.Table or None
            In the order in which they were appended; None if there are none.
        """
        if len(places) == 0:
            return None
        stored = [rows for _, rows in self._find_stored(places, first, last)]
        return _concat([*stored, *self._new])

    def take(
        self, places: Ints, first: Ints, last: Ints, wanted: Callable[[pa.Table], Flags]
    ) -> pa.Table | None:
        """Take those of the rows that `find` would return that are wanted; None if there are none.

        They must not be wanted again.
        """
        taken = []
        for run, rows in [*self._find_stored(places, first, last)]:
            mine = rows.filter(pa.array(wanted(rows)))
            changed = self.log.change(run, taken=run.taken + len(mine))
            taken.append(mine)
            if changed.taken == changed.rows:
                self.log.drop(changed)
        left = []
        for rows in self._new:
            flags = wanted(rows)
            taken.append(rows.filter(pa.array(flags)))
            left.append(rows.filter(pa.array(~flags)))
        self._new = [rows for rows in left if len(rows)]
        return _concat([rows for rows in taken if len(rows)])

    def _find_stored(self, places: Ints, first: Ints, last: Ints) -> Iterator[tuple[Run, pa.Table]]:
        """Yield runs, and what `find` returns of each."""
        if len(places) == 0:
            return
        since, until = int(first.min()), int(last.max())
        order = np.argsort(places)  # searching is faster in order
        places, first, last = places[order], first[order], last[order]
        found = [
            (run, self.log.directory(run).find_blocks(places, first, last))
            for run in self.runs
            if run.since <= until and since <= run.greatest
        ]
        self.log.fetch_blocks(found)
        for run, blocks in found:
            directory = self.log.directory(run)
            asked = self._asked.setdefault((run.file, run.begin), set())
            self._block_count += len(directory) if not asked else 0
            asked.update(blocks.tolist())
            rows = self._load(run, blocks)
            if rows is not None:
                self._known_times[run.file, run.begin] = (
                    self.kind.times(rows),
                    _after(directory, blocks),
                )
                yield run, rows

    def between(self, first: int, last: int) -> pa.Table | None:
        """Return the rows from one time to another, of a buffer of one place; None: there are none.

        They come in the order of runs, those of a run in order of time.
        """
        bounds = np.array([first]), np.array([last])
        found = self.find(np.zeros(1, np.int64), *bounds)
        if found is None:
            return None
        times = self.kind.times(found)
        rows = found.filter(pa.array((times >= first) & (times <= last)))
        return rows if len(rows) else None

    def take_due(self, until: int) -> Iterator[pa.Table]:
        """Yield all rows up to a time, of a buffer of one place, and take them as expired.

        They come in parts, in order of time.
        """
        due = [self.log.directory(run).time for run in self.runs if run.since <= until]
        begins = np.sort(np.concatenate([np.empty(0, np.int64), *due]))
        steps = begins[_DUE_BLOCKS::_DUE_BLOCKS]
        for step in [*np.unique(steps[steps < until]).tolist(), until]:
            rows = _concat([*self._take_due_stored(step), *self._take_new(step)])
            if rows is not None:
                yield rows

    def _take_due_stored(self, until: int) -> list[pa.Table]:
        found, at = [], np.zeros(1, np.int64)
        due = [run for run in self.runs if run.since <= until]
        bounds = [(np.array([run.since]), np.array([until])) for run in due]
        directories = [self.log.directory(run) for run in due]
        blocks = [
            each.find_blocks(at, *times) for each, times in zip(directories, bounds, strict=True)
        ]
        self.log.fetch_blocks(zip(due, blocks, strict=True))
        for run, directory, mine in zip(due, directories, blocks, strict=True):
            rows = self._load(run, mine)
            assert rows is not None, "a run has a row at the time since which it has not expired"
            times = self.kind.times(rows)
            later = int(times[times > until].min(initial=_after(directory, mine)))
            found.append(rows.filter(pa.array(times <= until)))
            if run.greatest <= until:
                self.log.drop(run)
            else:
                self.log.change(run, since=later)
        return found

    def _take_new(self, until: int) -> list[pa.Table]:
        """Take the new rows up to a time."""
        taken, left = [], []
        for rows in self._new:
            is_due = self.kind.times(rows) <= until
            taken.append(rows.filter(pa.array(is_due)))
            left.append(rows.filter(pa.array(~is_due)))
        self._new = [rows for rows in left if len(rows)]
        return [rows for rows in taken if len(rows)]

    def forget(self, until: int) -> None:
        """Take the rows up to a time as expired; runs that have no others are dropped unread."""
        for run in self.runs:
            if run.greatest <= until:
                self.log.drop(run)
            elif run.since <= until:
                self.log.change(run, since=self._first_after(run, until))
        if self._new:
            self._take_new(until)

    def _first_after(self, run: Run, until: int) -> int:
        """Return a time before which a run has no row after a time.

        It is the time of a row, where `between` has read those up to that time.
        """
        known = self._known_times.get((run.file, run.begin))
        if known is None or not self.kind.in_order:
            return until + 1
        times, following = known
        return max(int(times[times > until].min(initial=following)), until + 1)

    def _load(self, run: Run, blocks: Ints) -> pa.Table | None:
        """Return what has not expired in some blocks of a run; None of no blocks."""
        rows = _concat([tables[0] for tables in self.log.read_blocks(run, blocks)])
        if rows is None:
            return None
        rows = add_missing(rows, self._lacking)
        if run.since <= run.least:
            return rows
        return rows.filter(pa.array(self.kind.times(rows) >= run.since))

    # ---- what a call leaves

    @property
    def taken_count(self) -> int:
        """How many rows of runs were taken."""
        return sum(run.taken for run in self.runs)

    def append(self, rows: pa.Table) -> None:
        """Append rows, and markers of rows that were appended before."""
        if len(rows):
            self._new.append(rows)

    def leave_out_taken(self, wanted: Callable[[pa.Table], Flags]) -> None:
        """Have all runs written again, with the rows that are wanted."""
        self._wanted = wanted

    @property
    def must_be_rewritten(self) -> bool:
        """Whether `leave_out_taken` was called."""
        return self._wanted is not None

    @property
    def new_bytes(self) -> int:
        """Bytes in memory of the new rows; 1 if runs are to be written again."""
        return sum(max(rows.nbytes, 1) for rows in self._new) or int(self.must_be_rewritten)

    def before_finish(self) -> None:
        """Keep how many rows there are, and of which time."""
        self._set_numbers(len(self), self.first_times, self.last_times)

    def count_written(self, runs: Sequence[Run]) -> None:
        """Keep the same of the runs: where some were merged there may be fewer rows."""
        first, last = [run.since for run in runs], [run.greatest for run in runs]
        self._set_numbers(sum(run.rows for run in runs), first, last)

    def _set_numbers(
        self, rows: int, first_times: Sequence[int], last_times: Sequence[int]
    ) -> None:
        numbers = {"rows": rows}
        if rows:
            bounds = self.kind.to_ticks(min(first_times), max(last_times))
            numbers |= dict(zip(("start", "end"), bounds, strict=True))
        self.log.set_numbers(self.name, numbers)

    def note_written(self) -> None:
        """Forget the new rows."""
        self._new, self._wanted = [], None
        self._block_count, self._asked, self._known_times = 0, {}, {}

    def merge(self, runs: Sequence[Run], *, with_new: bool, are_oldest: bool) -> Iterator[Block]:
        """Yield what some runs come to, and the new rows after them."""
        new = self._new if with_new else []
        size = sum(run.size for run in runs) * _COMPRESSION + sum(rows.nbytes for rows in new)
        block_bytes = self._block_bytes(size)
        merged = MergeInput(self.log, self.kind, runs, new, self._lacking, self._load)
        is_one = len(runs) + len(new) == 1 and self.log.rescaling is None
        for rows, is_whole in merged.parts():
            if len(rows) and not is_one:
                rows = self.kind.compact(rows, are_oldest=are_oldest and is_whole)
            yield from self._to_blocks(self._select_wanted(rows), block_bytes)

    def _select_wanted(self, rows: pa.Table) -> pa.Table:
        """Return those of some rows that were not taken, and that this shard has."""
        if self._wanted is not None:
            rows = rows.filter(pa.array(self._wanted(rows)))
        if self.log.rescaling is not None:
            rows = rows.filter(pa.array(self.log.rescaling.select(rows, self.kind.key_columns)))
            rows = self.log.rescaling.shift(rows, self.kind.numbers)
        return rows

    def _to_blocks(self, rows: pa.Table, block_bytes: int) -> Iterator[Block]:
        """Yield rows as blocks."""
        if len(rows) == 0:
            return
        places, times = self.kind.places(rows), self.kind.times(rows)
        order = np.lexsort((times, places))
        rows = take_rows(rows, order).combine_chunks()
        places, times, markers = places[order], times[order], self.kind.are_markers(rows)
        length = max(1, len(rows) * block_bytes // max(rows.nbytes, 1))
        for begin in range(0, len(rows), length):
            part = slice(begin, begin + length)
            count = int(np.count_nonzero(markers[part]))
            yield Block(
                place=int(places[begin]),
                time=int(times[begin]),
                tables=(rows.slice(begin, length),),
                rows=len(times[part]) - count,
                markers=count,
                least=int(times[part].min()),
                greatest=int(times[part].max()),
            )

    def _block_bytes(self, size: int) -> int:
        """Return about how many bytes in memory a block of a run of so many has."""
        asked = sum(map(len, self._asked.values()))
        read_most = self.kind.learns and 2 * asked > max(self._block_count, _FEW_BLOCKS)
        if not self.kind.in_order and not read_most:
            return _BLOCK_BYTES
        return max(_ORDERED_BYTES, min(size // _BLOCKS_IN_ORDER, _LARGE_BYTES))


def _after(directory: Directory, blocks: Ints) -> int:
    """Return the first time of the block after the last one of some; LONG_MAX: there is none."""
    end = int(blocks[-1]) + 1
    return LONG_MAX if end == len(directory) else int(directory.time[end])


def _concat(tables: Sequence[pa.Table]) -> pa.Table | None:
    """Return tables one after the other: see `concat_rows`."""
    return concat_rows(tables) if tables else None
