"""OVER aggregates, row at a time in plain Python: the reference of the tests.

It follows Flink's functions, including their timers, and shares no code with the kernels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from gpu_windows import rules
from gpu_windows.functions.over import Lateness, Over
from gpu_windows.operators.base import Emission, StatefulOperator, Timers
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.keyed.values import arrow_array
from gpu_windows.operators.rejected import Rejected, rejected_rows
from gpu_windows.operators.results import TRACE, add_trace
from gpu_windows.operators.row_at_a_time.accumulators import accumulator_of
from gpu_windows.operators.state.buffer_spec import KeyColumns
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.whole_table import WholeTable
from gpu_windows.planning.kinds.over import OverPlan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.frames import Frame
from gpu_windows.vocabulary.triggers import Row

#: Names of the tables in the log: of rows, and of the other state of keys.
_ROWS, _KEYS = "over rows", "over keys"
#: Owner and names of the numbers saved in the log; columns of rows, and of keys with their types.
_OWNER, _NUMBERS = "over by row", ("watermark", "next row")
_NUMBER, _WAITS = "__number", "__waits"
_METADATA = ("last", "cleanup", "timers")
_TYPES = (pa.int64(), pa.int64(), pa.list_(pa.int64()))


@dataclass(frozen=True, order=True)
class _StoredRow:
    """A row of a key: its time, its number in order of arrival, and the row."""

    ts: int
    number: int
    row: Row = field(compare=False)


class _Key(ABC):
    """State of a key."""

    def __init__(self, over: Over) -> None:
        self.over = over
        self.rows: list[_StoredRow] = []  # of the frames, in order
        self.pending: list[_StoredRow] = []  # those of them that were not emitted, in order

    @abstractmethod
    def is_late(self, ts: int, watermark: int) -> bool:
        """Whether a new row is late."""

    def add(self, element: _StoredRow) -> None:
        """Add a row that is not late."""
        insort(self.rows, element)
        insort(self.pending, element)

    @property
    def metadata(self) -> tuple[int | None, int | None, list[int]]:
        """State in addition to rows: the last time, the cleanup time, timers."""
        return None, None, []

    def restore(self, last: int | None, cleanup: int | None, timers: list[int]) -> None:  # noqa: B027
        """Restore `metadata`."""

    @property
    def next_due(self) -> int:
        """The next watermark at which rows are emitted or expire; LONG_MAX: the end of input."""
        due = (element.ts + self.over.ticks_after for element in self.pending)
        return min(due, default=LONG_MAX)

    def advance(self, watermark: int) -> Iterator[tuple[_StoredRow, list[_StoredRow]]]:
        """Yield each due row, with the rows that contain its frames."""
        final = sum(element.ts <= watermark for element in self.rows)
        ahead = self.over.rows_after
        while self.pending:
            element = self.pending[0]
            in_time = rules.shifted(element.ts, self.over.ticks_after) <= watermark
            there = self.rows.index(element) + min(ahead, LONG_MAX // 2) < final
            if watermark != LONG_MAX and not (in_time and there):
                return
            yield self.pending.pop(0), self.rows


class _UpToWatermark(_Key):
    """Frames with unbounded PRECEDING, or with FOLLOWING rows: rows are late by the watermark."""

    def is_late(self, ts: int, watermark: int) -> bool:
        return ts <= watermark


class _UpToLastRow(_Key):
    """ROWS frames (Flink: RowTimeRowsBoundedPrecedingFunction)."""

    last: int | None = None  # Flink begins with 0; times before 1970 are not late here

    def is_late(self, ts: int, watermark: int) -> bool:
        del watermark
        return self.last is not None and ts <= self.last

    @property
    def metadata(self) -> tuple[int | None, int | None, list[int]]:
        return self.last, None, []

    def restore(self, last: int | None, cleanup: int | None, timers: list[int]) -> None:
        self.last = last

    def advance(self, watermark: int) -> Iterator[tuple[_StoredRow, list[_StoredRow]]]:
        for element, rows in super().advance(watermark):
            self.last = element.ts
            yield element, rows


class _UpToLastTimer(_UpToLastRow):
    """RANGE frames (Flink: RowTimeRangeBoundedPrecedingFunction)."""

    def __init__(self, over: Over) -> None:
        super().__init__(over)
        self.cleanup: int | None = None
        self.timers: set[int] = set()

    @property
    def metadata(self) -> tuple[int | None, int | None, list[int]]:
        return self.last, self.cleanup, sorted(self.timers)

    def restore(self, last: int | None, cleanup: int | None, timers: list[int]) -> None:
        self.last, self.cleanup, self.timers = last, cleanup, {*timers}

    @property
    def next_due(self) -> int:
        return min(self.timers, default=LONG_MAX)

    def add(self, element: _StoredRow) -> None:
        super().add(element)
        before = self.over.ticks_before
        self.timers.add(element.ts)
        if self.cleanup is None or self.cleanup < rules.must_reach(element.ts, before):
            self.cleanup = rules.cleanup_timer(element.ts, before)
            self.timers.add(self.cleanup)

    def advance(self, watermark: int) -> Iterator[tuple[_StoredRow, list[_StoredRow]]]:
        for timer in sorted(timer for timer in self.timers if timer <= watermark):
            self.timers.remove(timer)
            if self.cleanup is not None and self.cleanup <= timer:
                self.rows, self.pending, self.last, self.cleanup = [], [], None, None
                continue
            for element in [element for element in self.pending if element.ts == timer]:
                self.pending.remove(element)
                yield element, self.rows
            self.last = timer


_KINDS: Mapping[Lateness, type[_Key]] = {
    Lateness.WATERMARK: _UpToWatermark,
    Lateness.LAST_ROW: _UpToLastRow,
    Lateness.LAST_TIMER: _UpToLastTimer,
}


class ReferenceOverOperator(StatefulOperator[StateLog]):
    """OVER aggregates, computed from their definition.

    Parameters
    ----------
    plan : OverPlan
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    """

    def __init__(self, plan: OverPlan, *, trace: bool = False) -> None:
        self._plan, self._over, self._trace = plan, plan.query.over, trace
        query = plan.query
        self._encoder = KeyEncoder([query.schema.field(name).type for name in query.keys])
        self._schema = query.in_ticks(plan.input_columns)
        self._keys: dict[int, _Key] = {}
        self._seen = 0
        self._watermark = LONG_MIN
        self._tables: tuple[WholeTable, ...] = ()

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Add rows in order of arrival."""
        query = self._plan.query
        status = np.zeros(len(batch), np.int8)
        codes = self._encoder.encode([batch.column(name) for name in query.keys]).tolist()
        times = batch.column(query.time).cast(pa.int64()).to_pylist()
        first, last = query.usable_ticks
        for i, (code, ts, row) in enumerate(zip(codes, times, batch.to_pylist(), strict=True)):
            key = self._keys.setdefault(code, _KINDS[self._over.lateness](self._over))
            if ts is None:
                status[i] = rules.NULL
            elif not first <= ts <= last:
                status[i] = rules.OUT_OF_RANGE
            elif key.is_late(ts, self._watermark):
                status[i] = rules.LATE
            else:
                key.add(_StoredRow(ts, self._seen + i, row))
        self._seen += len(batch)
        rejected = Rejected.of(status)
        yield Emission(self._nothing, rejected_rows(batch, rejected), rejected.counts())

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Emit the due rows."""
        if watermark <= self._watermark:
            return
        self._watermark = watermark
        due = [
            (element, self._values(element, rows))
            for key in self._keys.values()
            for element, rows in key.advance(watermark)
        ]
        if watermark == LONG_MAX:
            self._keys = {}
        if due:
            due.sort(key=lambda each: each[0])
            table = self._table(due)
            yield Emission(table, pa.table({}), Counters(fired=len(table)))

    def _restore_state(self, log: StateLog) -> StateLog:
        self._tables = (
            WholeTable(log, _ROWS, KeyColumns.BY_NAME),
            WholeTable(log, _KEYS, KeyColumns.BY_NUMBER),
        )
        numbers = log.numbers(_OWNER, _NUMBERS)
        if numbers is None:
            return log
        self._watermark, self._seen = numbers
        rows, keys = (table.load() for table in self._tables)
        if keys is None:
            return log
        codes = self._encoder.encode([keys.column(f"key{i}") for i in range(self._width)]).tolist()
        metadata = (keys.column(name).to_pylist() for name in _METADATA)
        for code, *each in zip(codes, *metadata, strict=True):
            self._keys[code] = key = _KINDS[self._over.lateness](self._over)
            key.restore(*each)
        if rows is None:
            return log
        owners = self._encoder.encode([rows.column(n) for n in self._plan.query.keys]).tolist()
        of_rows = (rows.column(name).to_pylist() for name in (_NUMBER, _WAITS))
        plain = rows.select(self._schema.names).to_pylist()
        for code, number, waits, row in zip(owners, *of_rows, plain, strict=True):
            element = _StoredRow(row[self._plan.query.time], number, row)
            insort(self._keys[code].rows, element)
            if waits:
                insort(self._keys[code].pending, element)
        return log

    def _save(self, stored: StateLog) -> None:
        rows_and_pending = [
            (each, each in key.pending) for key in self._keys.values() for each in key.rows
        ]
        rows = pa.Table.from_pylist([each.row for each, _ in rows_and_pending], self._schema)
        own = {
            _NUMBER: [each.number for each, _ in rows_and_pending],
            _WAITS: [waits for _, waits in rows_and_pending],
        }
        for name, dtype in ((_NUMBER, pa.int64()), (_WAITS, pa.bool_())):
            rows = rows.append_column(name, pa.array(own[name], dtype))
        numbers = (self._watermark, self._seen)
        stored.set_numbers(_OWNER, dict(zip(_NUMBERS, numbers, strict=True)))
        decoded = self._encoder.decode(np.array([*self._keys], np.int64))
        columns = {f"key{i}": column for i, column in enumerate(decoded)}
        values = [*zip(*(key.metadata for key in self._keys.values()), strict=True)] or [()] * 3
        for name, column, dtype in zip(_METADATA, values, _TYPES, strict=True):
            columns[name] = pa.array([*column], dtype)
        for table, rows_or_keys in zip(self._tables, (rows, pa.table(columns)), strict=True):
            table.save(rows_or_keys)

    def _next_timers(self, stored: StateLog) -> Timers:
        del stored
        due = min((key.next_due for key in self._keys.values()), default=LONG_MAX)
        return (None if due == LONG_MAX else due), None

    @property
    def _width(self) -> int:
        return len(self._plan.query.keys)

    def state_size(self) -> dict[str, int]:
        """Return the number of stored rows."""
        return {"rows": sum(len(key.rows) for key in self._keys.values())}

    @property
    def _nothing(self) -> pa.Table:
        extra = TRACE if self._trace else ()
        return pa.schema([*self._plan.result_schema, *extra]).empty_table()

    def _values(self, element: _StoredRow, rows: Sequence[_StoredRow]) -> list[Any]:
        """Return the aggregates of a row."""
        values = []
        for column in self._over.columns:
            accumulator = accumulator_of(column.bound)
            for each in _frame_of(column.frame, element, rows):
                accumulator.add(each.row)
            values.append(accumulator.result())
        return values

    def _table(self, due: Sequence[tuple[_StoredRow, list[Any]]]) -> pa.Table:
        schema = self._plan.result_schema
        query = self._plan.query
        names = (*query.keys, query.time, *self._over.carried)
        carried = [[element.row[name] for element, _ in due] for name in names]
        made = zip(*(values for _, values in due), strict=True)
        columns = zip([*carried, *made], schema, strict=True)
        arrays = [arrow_array([*values], each.type) for values, each in columns]
        table = pa.Table.from_arrays(arrays, schema=schema)
        if not self._trace:
            return table
        times = table.column(query.time).cast(pa.int64())
        traced = add_trace(table, "event_time")
        return traced.set_column(len(traced.column_names) - 1, TRACE[1], times)


def _frame_of(frame: Frame, element: _StoredRow, rows: Sequence[_StoredRow]) -> list[_StoredRow]:
    """Return the rows of a frame, in order."""
    if frame.in_time:
        low = LONG_MIN if frame.is_unbounded_before else element.ts + frame.lower
        high = LONG_MAX if frame.upper == LONG_MAX else element.ts + frame.upper
        return [each for each in rows if low <= each.ts <= high]
    index = rows.index(element)
    return [*rows[max(index + frame.lower, 0) : max(index + frame.upper + 1, 0)]]
