"""Flink's TemporalRowTimeJoinOperator, row at a time in plain Python: the tests' reference."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from gpu_windows import rules
from gpu_windows.functions.two_inputs import SIDE, TIME
from gpu_windows.operators.base import Emission, Timers
from gpu_windows.operators.joins.pairs import holds
from gpu_windows.operators.rejected import Rejected, rejected_rows
from gpu_windows.operators.row_at_a_time.pair_rows import PairRowsOperator
from gpu_windows.operators.state.buffer_spec import KeyColumns
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.whole_table import WholeTable
from gpu_windows.planning.kinds.temporal_join import TemporalJoinPlan
from gpu_windows.rules import LONG_MAX, LONG_MIN

#: Name of the table of both sides' rows in the log.
_NAME = "versioned"
#: Owner and names of the numbers saved in the log.
_OWNER, _NUMBERS = "temporal join by row", ("watermark",)


class ReferenceTemporalJoinOperator(PairRowsOperator):
    """Left rows with the version of their key at their time, by Flink's algorithm.

    Parameters
    ----------
    plan : TemporalJoinPlan
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.

    Notes
    -----
    Source: org.apache.flink.table.runtime.operators.join.temporal.TemporalRowTimeJoinOperator. It
    removes versions of a key at its timers only; here every watermark removes those of all keys.
    Versions that expire (``valid_for``) are an addition.
    """

    def __init__(self, plan: TemporalJoinPlan, *, trace: bool = False) -> None:
        super().__init__(plan, trace=trace)
        self._join = plan.query.join
        self._watermark = LONG_MIN
        self._times: list[int | None] = []
        #: Left rows in order of arrival (Flink: leftState).
        self._pending: list[int] = []
        #: Versions by key code: time to row (Flink: rightState).
        self._versions: dict[int, dict[int, int]] = {}

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Buffer rows in order of arrival until the watermark passes them."""
        status = np.zeros(len(batch), np.int8)
        first, last = self._join.usable_ticks
        begin = self._append(batch)
        for row, is_left in enumerate(batch.column(SIDE).to_pylist(), begin):
            ts = self._times[row]
            if ts is None:
                status[row - begin] = rules.NULL
            elif not first <= ts <= last:
                status[row - begin] = rules.OUT_OF_RANGE
            else:
                self._element(row, ts, is_left=is_left)
        rejected = Rejected.of(status)
        yield Emission(self._table([]), rejected_rows(batch, rejected), rejected.counts())

    def _element(self, row: int, ts: int, *, is_left: bool) -> None:
        if is_left:
            self._pending.append(row)
        elif self._codes[row] >= 0:
            self._versions.setdefault(self._codes[row], {})[ts] = row

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Emit the due left rows; drop the versions that are superseded or have expired."""
        if watermark <= self._watermark:
            return
        self._watermark = watermark
        due = [row for row in self._pending if self._time(row) <= watermark]
        self._pending = [row for row in self._pending if self._time(row) > watermark]
        pairs = [(row, self._version(row)) for row in due]
        if self._pair.how == "inner":
            pairs = [pair for pair in pairs if pair[1] >= 0]
        if pairs:
            yield self._emission(pairs, "event_time")
        for code, times in [*self._versions.items()]:
            newest = max((ts for ts in times if ts <= watermark), default=LONG_MIN)
            live = {
                ts: row for ts, row in times.items() if ts >= newest and not self._is_expired(ts)
            }
            self._versions[code] = live
            if not live or watermark == LONG_MAX:
                del self._versions[code]

    def _time(self, row: int) -> int:
        ts = self._times[row]
        assert ts is not None, "stored rows have a time"
        return ts

    def _is_expired(self, ts: int) -> bool:
        lives = self._join.valid_for
        return lives is not None and bool(rules.end_of_version(ts, lives) <= self._watermark)

    def _version(self, row: int) -> int:
        """Return the version of a left row's key at its time, or -1."""
        ts = self._time(row)
        versions = self._versions.get(self._codes[row], {})
        before = [time for time in versions if ts + self._join.lower <= time <= ts]
        if not before:
            return -1
        version = versions[max(before)]
        deleted = self._join.deleted
        if deleted is not None and self._rows[deleted][version].as_py():
            return -1
        holding = holds(self._pair.condition, self._sides([(row, version)]))
        return version if holding is None or len(holding) else -1

    def state_size(self) -> dict[str, int]:
        """Return the number of pending rows of each side, and of versions."""
        times = [ts for versions in self._versions.values() for ts in versions]
        future = sum(ts > self._watermark for ts in times)
        return {
            "left": len(self._pending),
            "right": future,
            "versions": len(times) - future,
        }

    # ---- between calls

    def _restore_state(self, log: StateLog) -> StateLog:
        """Load all stored rows."""
        self._table_in_log = WholeTable(log, _NAME, KeyColumns.BY_NAME)
        (self._watermark,) = log.numbers(_OWNER, _NUMBERS) or (self._watermark,)
        rows = self._table_in_log.load()
        if rows is None:
            return log
        self._append(rows)
        for row, is_left in enumerate(rows.column(SIDE).to_pylist()):
            self._element(row, self._time(row), is_left=is_left)
        return log

    def _save(self, stored: StateLog) -> None:
        """Write all stored rows."""
        versions = (row for times in self._versions.values() for row in times.values())
        index = pa.array(sorted([*self._pending, *versions]), pa.int64())
        self._table_in_log.save(self._rows.take(index))
        stored.set_numbers(_OWNER, dict(zip(_NUMBERS, (self._watermark,), strict=True)))

    def _next_timers(self, stored: StateLog) -> Timers:
        """Return the next watermark that emits rows, or supersedes or expires a version."""
        times = [self._time(row) for row in self._pending]
        for version in (ts for times in self._versions.values() for ts in times):
            lives = self._join.valid_for
            times += [version] if version > self._watermark else []
            times += [] if lives is None else [rules.end_of_version(version, lives)]
        return max(min(times), self._watermark + 1) if times else None, None

    # ---- rows

    def _append(self, batch: pa.Table) -> int:
        """Store rows, and their times."""
        first = super()._append(batch)
        self._times += self._rows.column(TIME)[first:].to_pylist()
        return first
