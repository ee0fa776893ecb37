"""Aggregates over frames, row at a time in plain Python: the truth that the tests ask.

It is written after Flink's functions, timers and all, and knows nothing of how kernels go about it.
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
from gpu_windows.operators.base import Emission, Operator
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.counters import Counters, Rejected, rejected_rows
from gpu_windows.operators.results import TRACE, add_trace
from gpu_windows.operators.row_at_a_time.accumulators import accumulator_of
from gpu_windows.planning.kinds.over import OverPlan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.rules.lateness import cleanup_timer, must_reach
from gpu_windows.vocabulary.frames import Frame
from gpu_windows.vocabulary.triggers import Row


@dataclass(frozen=True, order=True)
class _Kept:
    """A row of a key: its time, its number in order of arrival, and the row."""

    ts: int
    number: int
    row: Row = field(compare=False)


class _Key(ABC):
    """What is kept of a key."""

    def __init__(self, over: Over) -> None:
        self.over = over
        self.rows: list[_Kept] = []  # of the frames, in order
        self.waiting: list[_Kept] = []  # those of them that were not given, in order

    @abstractmethod
    def is_late(self, ts: int, watermark: int) -> bool:
        """Whether a row comes too late."""

    def take(self, kept: _Kept) -> None:
        """Take a row that is not late."""
        insort(self.rows, kept)
        insort(self.waiting, kept)

    def advance(self, watermark: int) -> Iterator[tuple[_Kept, list[_Kept]]]:
        """Yield each row that is due, and the rows that its frames are among."""
        final = sum(kept.ts <= watermark for kept in self.rows)
        ahead = self.over.rows_after
        while self.waiting:
            kept = self.waiting[0]
            in_time = rules.add_saturating(kept.ts, self.over.ticks_after) <= watermark
            there = self.rows.index(kept) + min(ahead, LONG_MAX // 2) < final
            if watermark != LONG_MAX and not (in_time and there):
                return
            yield self.waiting.pop(0), self.rows


class _UpToWatermark(_Key):
    """Frames from the first row on, or with rows to come."""

    def is_late(self, ts: int, watermark: int) -> bool:
        return ts <= watermark


class _UpToLastRow(_Key):
    """Frames of so many rows (Flink: RowTimeRowsBoundedPrecedingFunction)."""

    last: int | None = None  # Flink begins with 0; times before 1970 are not late here

    def is_late(self, ts: int, watermark: int) -> bool:
        del watermark
        return self.last is not None and ts <= self.last

    def advance(self, watermark: int) -> Iterator[tuple[_Kept, list[_Kept]]]:
        for kept, rows in super().advance(watermark):
            self.last = kept.ts
            yield kept, rows


class _UpToLastTimer(_UpToLastRow):
    """Frames of so much time (Flink: RowTimeRangeBoundedPrecedingFunction)."""

    def __init__(self, over: Over) -> None:
        super().__init__(over)
        self.cleanup: int | None = None
        self.timers: set[int] = set()

    def take(self, kept: _Kept) -> None:
        super().take(kept)
        before = self.over.ticks_before
        self.timers.add(kept.ts)
        if self.cleanup is None or self.cleanup < must_reach(kept.ts, before):
            self.cleanup = cleanup_timer(kept.ts, before)
            self.timers.add(self.cleanup)

    def advance(self, watermark: int) -> Iterator[tuple[_Kept, list[_Kept]]]:
        for timer in sorted(timer for timer in self.timers if timer <= watermark):
            self.timers.remove(timer)
            if self.cleanup is not None and self.cleanup <= timer:
                self.rows, self.waiting, self.last, self.cleanup = [], [], None, None
                continue
            for kept in [kept for kept in self.waiting if kept.ts == timer]:
                self.waiting.remove(kept)
                yield kept, self.rows
            self.last = timer


_KINDS: Mapping[Lateness, type[_Key]] = {
    Lateness.WATERMARK: _UpToWatermark,
    Lateness.LAST_ROW: _UpToLastRow,
    Lateness.LAST_TIMER: _UpToLastTimer,
}


class ReferenceOverOperator(Operator):
    """Aggregates over frames, from their definition.

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

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Take rows in order of arrival."""
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
                key.take(_Kept(ts, self._seen + i, row))
        self._seen += len(batch)
        rejected = Rejected.of(status)
        yield Emission(self._nothing, rejected_rows(batch, rejected), rejected.counts())

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Give the rows that are due."""
        if watermark <= self._watermark:
            return
        self._watermark = watermark
        due = [
            (kept, self._values(kept, rows))
            for key in self._keys.values()
            for kept, rows in key.advance(watermark)
        ]
        if watermark == LONG_MAX:
            self._keys = {}
        if due:
            due.sort(key=lambda each: each[0])
            table = self._table(due)
            yield Emission(table, pa.table({}), Counters(fired=len(table)))

    def state_size(self) -> dict[str, int]:
        """Return how many rows are kept."""
        return {"rows": sum(len(key.rows) for key in self._keys.values())}

    @property
    def _nothing(self) -> pa.Table:
        extra = TRACE if self._trace else ()
        return pa.schema([*self._plan.result_schema, *extra]).empty_table()

    def _values(self, kept: _Kept, rows: Sequence[_Kept]) -> list[Any]:
        """Return the aggregates of a row."""
        values = []
        for column in self._over.columns:
            accumulator = accumulator_of(column.bound)
            for each in _framed(column.frame, kept, rows):
                accumulator.add(each.row)
            values.append(accumulator.result())
        return values

    def _table(self, due: Sequence[tuple[_Kept, list[Any]]]) -> pa.Table:
        schema = self._plan.result_schema
        query = self._plan.query
        names = (*query.keys, query.time, *self._over.carried)
        carried = [[kept.row[name] for kept, _ in due] for name in names]
        made = zip(*(values for _, values in due), strict=True)
        columns = zip([*carried, *made], schema, strict=True)
        arrays = [pa.array([*values], each.type) for values, each in columns]
        table = pa.Table.from_arrays(arrays, schema=schema)
        if not self._trace:
            return table
        times = table.column(query.time).cast(pa.int64())
        named = add_trace(table, "event_time")
        return named.set_column(len(named.column_names) - 1, TRACE[1], times)


def _framed(frame: Frame, kept: _Kept, rows: Sequence[_Kept]) -> list[_Kept]:
    """Return the rows of a frame, in order."""
    if frame.in_time:
        low = LONG_MIN if frame.is_unbounded_before else kept.ts + frame.lower
        high = LONG_MAX if frame.upper == LONG_MAX else kept.ts + frame.upper
        return [each for each in rows if low <= each.ts <= high]
    place = rows.index(kept)
    return [*rows[max(place + frame.lower, 0) : max(place + frame.upper + 1, 0)]]
