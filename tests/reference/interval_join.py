"""Flink's IntervalJoinOperator, row at a time in plain Python: the truth that the tests ask."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from gpu_windows import rules
from gpu_windows.functions.join import LEFT_ALONE
from gpu_windows.functions.two_inputs import SIDE, TIME
from gpu_windows.operators.base import Emission
from gpu_windows.operators.counters import Rejected, rejected_rows
from gpu_windows.operators.joins.pairs import holds
from gpu_windows.planning.kinds.pairs import IntervalJoinPlan, planned_join
from gpu_windows.rules import LONG_MIN
from tests.reference.pair_rows import PairRowsOperator, Places


class ReferenceJoinOperator(PairRowsOperator):
    """Pairs of two inputs within bounds of time, by Flink's algorithm.

    Parameters
    ----------
    plan : IntervalJoinPlan
        Of a `IntervalJoinSpec`.
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.

    Notes
    -----
    Source: org.apache.flink.streaming.api.operators.co.IntervalJoinOperator; what is not inner, and
    conditions, are ours.
    """

    def __init__(self, plan: IntervalJoinPlan, *, trace: bool = False) -> None:
        super().__init__(plan, trace=trace)
        self._join = planned_join(plan)
        self._watermark = self._join.clock(LONG_MIN)
        self._matched: set[int] = set()
        #: For each side: code of the key to time to rows (Flink: leftBuffer, rightBuffer).
        self._buffers: tuple[dict[int, dict[int, list[int]]], ...] = ({}, {})

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Take rows in order of arrival; a row gives its pairs with those before it."""
        status = np.zeros(len(batch), np.int8)
        pairs: list[Places] = []
        first, usable = self._append(batch), self._join.usable_ticks
        times = batch.column(TIME).cast(pa.int64()).to_pylist()
        for i, (ts, is_left) in enumerate(zip(times, batch.column(SIDE).to_pylist(), strict=True)):
            if ts is None:
                status[i] = rules.NULL
            elif not usable[0] <= ts <= usable[1]:
                status[i] = rules.OUT_OF_RANGE
            elif ts < self._watermark and not self._join.joins_late:
                status[i] = rules.LATE
            else:
                side = int(not is_left)
                pairs += self._element(first + i, ts, side)
                if not self._waits(ts, side) and first + i not in self._matched:
                    if self._join.emits_at_end[side]:
                        pairs.append((first + i, -1) if is_left else (-1, first + i))
                    elif ts < self._watermark:
                        status[i] = rules.LATE
        yield self._emission(pairs, "element")
        rejected = Rejected.of(status)
        yield Emission(self._table([]), rejected_rows(batch, rejected), rejected.counts())

    def _element(self, row: int, ts: int, side: int) -> Iterator[Places]:
        """Put a row into its buffer; yield its pairs, -1 for the right row of one that is alone."""
        code = self._codes[row]
        if self._waits(ts, side):
            self._buffers[side].setdefault(code, {}).setdefault(ts, []).append(row)
        if code < 0 or self._join.nearest is not None:
            return  # a null matches nothing, and the nearest row is not known yet
        lower, upper = self._join.lower, self._join.upper
        low, high = (lower, upper) if side == 0 else (-upper, -lower)
        for other_ts, others in self._buffers[1 - side].get(code, {}).items():
            if ts + low <= other_ts <= ts + high:
                for other in others:
                    yield from self._match((row, other) if side == 0 else (other, row))

    def _waits(self, ts: int, side: int) -> bool:
        """Whether a new row is stored."""
        reach = self._join.reach[side]
        return not self._join.joins_late or bool(rules.waits(ts, reach, self._watermark))

    def _match(self, pair: Places) -> Iterator[Places]:
        holding = holds(self._pair.condition, self._sides([pair]))
        if holding is not None and len(holding) == 0:
            return
        is_first = pair[0] not in self._matched
        self._matched.update(pair)
        if self._pair.how not in LEFT_ALONE:
            yield pair
        elif self._pair.how == "semi" and is_first:
            yield pair[0], -1

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Drop the expired rows; emit the unmatched ones of outer joins."""
        watermark = self._join.clock(watermark)
        if watermark <= self._watermark:
            return
        self._watermark = watermark
        for side, buffer in enumerate(self._buffers):
            retention, expired = self._join.retention[side], []
            for code, times in [*buffer.items()]:
                for ts in [t for t in times if rules.add_saturating(t, retention) <= watermark]:
                    expired += [(ts, row) for row in times.pop(ts)]
                if not times:
                    del buffer[code]
            if self._join.nearest is not None:
                pairs = [self._nearest(ts, row) for ts, row in sorted(expired)] if side == 0 else []
                if self._pair.how == "inner":
                    pairs = [pair for pair in pairs if pair[1] >= 0]
                if pairs:
                    yield self._emission(pairs, "event_time")
                continue
            alone = [row for _, row in sorted(expired) if row not in self._matched]
            if alone and self._join.emits_at_end[side]:
                pairs = [(row, -1) if side == 0 else (-1, row) for row in alone]
                yield self._emission(pairs, "event_time")

    def _nearest(self, ts: int, row: int) -> Places:
        """Return a left row and the nearest right one: the earlier of two, the last of one time."""
        lower, upper = self._join.lower, self._join.upper
        code = self._codes[row]
        times = self._buffers[1].get(code, {}) if code >= 0 else {}
        near = [t for t in times if ts + lower <= t <= ts + upper]
        if not near:
            return row, -1
        best = min(near, key=lambda t: (abs(t - ts), t))
        is_first = best > ts or self._join.nearest == "after"
        return row, times[best][0 if is_first else -1]

    def state_size(self) -> dict[str, int]:
        """Return the number of stored rows of each side."""
        sizes = (
            sum(len(rows) for times in buffer.values() for rows in times.values())
            for buffer in self._buffers
        )
        return dict(zip(("left", "right"), sizes, strict=True))
