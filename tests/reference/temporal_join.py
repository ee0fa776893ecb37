"""Flink's TemporalRowTimeJoinOperator, row at a time in plain Python: the truth of the tests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from gpu_windows import rules
from gpu_windows.functions.two_inputs import SIDE, TIME
from gpu_windows.operators.base import Emission
from gpu_windows.operators.counters import Rejected, rejected_rows
from gpu_windows.operators.joins.pairs import holds
from gpu_windows.planning.kinds.pairs import TemporalJoinPlan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from tests.reference.pair_rows import PairRowsOperator


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
    removes versions of a key at its timers only, here every watermark removes those of all keys;
    that versions end (``valid_for``) is ours.
    """

    def __init__(self, plan: TemporalJoinPlan, *, trace: bool = False) -> None:
        super().__init__(plan, trace=trace)
        self._join = plan.query.join
        self._watermark = LONG_MIN
        self._times: list[int | None] = []
        #: Left rows in order of arrival (Flink: leftState).
        self._waiting: list[int] = []
        #: Of each key, time to row (Flink: rightState).
        self._versions: dict[int, dict[int, int]] = {}

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Take rows in order of arrival; all wait for the watermark."""
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
            self._waiting.append(row)
        elif self._codes[row] >= 0:
            self._versions.setdefault(self._codes[row], {})[ts] = row

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Give the left rows that it reaches; drop the versions that are superseded or end."""
        if watermark <= self._watermark:
            return
        self._watermark = watermark
        due = [row for row in self._waiting if self._time(row) <= watermark]
        self._waiting = [row for row in self._waiting if self._time(row) > watermark]
        pairs = [(row, self._version(row)) for row in due]
        if self._pair.how == "inner":
            pairs = [pair for pair in pairs if pair[1] >= 0]
        if pairs:
            yield self._emission(pairs, "event_time")
        for code, times in [*self._versions.items()]:
            newest = max((ts for ts in times if ts <= watermark), default=LONG_MIN)
            kept = {ts: row for ts, row in times.items() if ts >= newest and not self._ended(ts)}
            self._versions[code] = kept
            if not kept or watermark == LONG_MAX:
                del self._versions[code]

    def _time(self, row: int) -> int:
        ts = self._times[row]
        assert ts is not None, "rows that are kept have a time"
        return ts

    def _ended(self, ts: int) -> bool:
        lives = self._join.valid_for
        return lives is not None and bool(rules.end_of_version(ts, lives) <= self._watermark)

    def _version(self, row: int) -> int:
        """Return the version of a left row's key at its time; -1 if there is none."""
        ts = self._time(row)
        of_key = self._versions.get(self._codes[row], {})
        before = [time for time in of_key if ts + self._join.lower <= time <= ts]
        if not before:
            return -1
        version = of_key[max(before)]
        deleted = self._join.deleted
        if deleted is not None and self._rows[deleted][version].as_py():
            return -1
        held = holds(self._pair.condition, self._sides([(row, version)]))
        return version if held is None or len(held) else -1

    def state_size(self) -> dict[str, int]:
        """Return how many rows of each side wait, and how many versions there are."""
        times = [ts for versions in self._versions.values() for ts in versions]
        waiting = sum(ts > self._watermark for ts in times)
        return {
            "left": len(self._waiting),
            "right": waiting,
            "versions": len(times) - waiting,
        }

    # ---- rows

    def _append(self, batch: pa.Table) -> int:
        """Remember rows, and their times."""
        first = super()._append(batch)
        self._times += self._rows.column(TIME)[first:].to_pylist()
        return first
