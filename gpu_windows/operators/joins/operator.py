"""The interval join strategy: sort rows by key and time, find ranges, produce pairs in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.functions.join import LEFT_ALONE
from gpu_windows.functions.two_inputs import TIME
from gpu_windows.operators.base import Emission, Timers
from gpu_windows.operators.columns.numeric import to_numeric
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.joins import pairs as join_pairs
from gpu_windows.operators.joins.base import JoinOperator
from gpu_windows.operators.joins.rows import JoinRows
from gpu_windows.operators.joins.stored_side import KINDS, Needs
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.kinds.pairs import IntervalJoinPlan, planned_join
from gpu_windows.rules import LONG_MAX, LONG_MIN

Ints = NDArray[np.int64]
Kind = Literal["left", "right"]

#: The owner of the saved numbers, and their names.
_OWNER, _NUMBERS = "join", ("watermark", *(f"next {kind}" for kind in KINDS))
_DIRECTIONS = {"before": rules.BEFORE, "after": rules.AFTER, "either": rules.EITHER}


class IntervalJoinOperator(JoinOperator):
    """Pairs of two inputs within bounds of time.

    Parameters
    ----------
    plan : IntervalJoinPlan
        Of a `IntervalJoinSpec`.
    kernels : Kernels
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    in_order : bool
        Whether pairs come in the order in which the later row of each arrived.
    """

    def __init__(
        self,
        plan: IntervalJoinPlan,
        kernels: Kernels,
        *,
        trace: bool = False,
        in_order: bool = True,
    ) -> None:
        self._join, self._in_order = planned_join(plan), in_order
        join = self._join
        probed = (join.nearest is None, True)  # else only left rows probe right ones
        super().__init__(
            plan,
            join,
            kernels,
            upper=join.upper,
            right=join.pair.right,
            retention=join.retention,
            needs=[*map(Needs, join.tracks, join.emits_at_end, probed)],
            trace=trace,
        )
        self._watermark = join.clock(LONG_MIN)

    # ---- interface of an operator

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Process rows of both sides; emit their pairs."""
        status = self._status_of(batch)
        if not self._join.joins_late:
            is_late = to_numeric(batch.column(TIME)).values < self._watermark
            status[(status == rules.ACCEPTED) & is_late] = rules.LATE
        left, right = (
            self._select_new(batch, places, side)
            for side, places in enumerate(self._find_places(batch, status))
        )
        late: Iterator[tuple[Emission, Ints]] = iter(())
        if self._join.joins_late:
            new = zip((left, right), self._join.reach, strict=True)
            (left, late_left), (right, late_right) = (self._split_late(*each) for each in new)
            late = self._match_late(left, right, late_left, late_right, status)
        emissions = chain(self._match_new(left, right), late)
        yield from self._sort_emissions(emissions) if self._in_order else (e for e, _ in emissions)
        self._left.add(left)
        self._right.add(right)
        yield self._acknowledge(batch, status)

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Drop the rows that can no longer match; emit the unmatched ones of outer joins."""
        watermark = self._join.clock(watermark)
        if watermark <= self._watermark:
            return
        self._watermark = watermark
        for side in self._sides:
            for rows in side.expire(watermark):
                if len(rows):
                    yield from self._emit_expired(rows)

    def _emit_expired(self, rows: JoinRows) -> Iterator[Emission]:
        """Yield the results of expired rows."""
        if self._join.nearest is None:
            yield self._make_emission(self._fill_unmatched(rows.by_time()), "event_time")
            return
        places = rows.places_of(np.ones(len(rows), np.bool_))
        for begin in range(0, len(rows), join_pairs.PAIRS):
            part = rows.take(places[begin : begin + join_pairs.PAIRS])
            table = self._add_nearest(part)
            if len(table):
                yield self._make_emission(table, "event_time")

    def _add_nearest(self, left: JoinRows) -> pa.Table:
        """Return left rows with the nearest right row of each."""
        bounds = self._join.lower, self._join.upper
        right = () if self._join.is_empty else self._right.find_candidates(left, *bounds)
        best = self._find_nearest(left, right, _DIRECTIONS[self._join.nearest or "either"])
        found = best.has_match
        i = left.places_of(found | (self._pair.how == "left"))
        if not found.any():
            return self._fill_unmatched(left.take(i).by_time())
        right_rows, places = best.rows(self._pair.right)
        return self._side_by_side(left, i, right_rows.take(pa.array(places[i], mask=~found[i])))

    def _restore_state(self, log: StateLog) -> StateLog:
        """Open the stored rows; they are read when rows of their keys and times come."""
        self._watermark, *numbers = log.numbers(_OWNER, _NUMBERS) or (self._watermark, 0, 0)
        for side, number in zip(self._sides, numbers, strict=True):
            side.restore(log, number)
        return log

    def _save(self, stored: StateLog) -> None:
        """Write the new rows, and match markers of the others."""
        numbers = (self._watermark, *(side.save() for side in self._sides))
        stored.set_numbers(_OWNER, dict(zip(_NUMBERS, numbers, strict=True)))

    def _next_timers(self, stored: StateLog) -> Timers:
        """Return the next watermark that expires rows."""
        del stored
        first = min(side.next_end for side in self._sides)
        return None if first == LONG_MAX else first, None

    # ---- rows

    def _select_new(self, batch: pa.Table, places: Ints, side: int) -> JoinRows:
        table, matched = self._select(batch, places, side), np.zeros(len(places), np.bool_)
        return self._indexes[side].make_rows(table, matched, arrival=places)

    # ---- pairs

    def _match_new(self, left: JoinRows, right: JoinRows) -> Iterator[tuple[Emission, Ints]]:
        """Yield the pairs of new rows with stored ones, and with each other."""
        if self._join.nearest is None:
            yield from self._match_stored_right(left)
            yield from self._match_pairs(left, right)
            yield from self._match_stored_left(right)

    def _match_late(
        self, left: JoinRows, right: JoinRows, late_left: JoinRows, late_right: JoinRows,
        status: NDArray[np.int8],
    ) -> Iterator[tuple[Emission, Ints]]:  # fmt: skip
        """Yield the pairs of rows that are not stored, each with rows that came before it.

        Unmatched ones are emitted alone, or their ``status`` is set to LATE.
        """
        yield from self._match_stored_right(late_left)
        yield from self._match_pairs(late_left, right, second="left")
        yield from self._match_pairs(left, late_right, second="right")
        yield from self._match_stored_left(late_right)
        for rows, emits in zip((late_left, late_right), self._join.emits_at_end, strict=True):
            alone = rows.take(np.flatnonzero(~rows.matched)).by_time()
            if not emits:
                status[alone.arrival[alone.ts < self._watermark]] = rules.LATE
            elif len(alone):
                yield (
                    self._make_emission(self._fill_unmatched(alone), "element"),
                    alone.arrival,
                )

    def _split_late(self, rows: JoinRows, reach: int) -> tuple[JoinRows, JoinRows]:
        """Split rows into those that may match later rows, and those that may not."""
        waits = rules.waits(rows.ts, reach, self._watermark)
        stored = rows if waits.all() else rows.take(np.flatnonzero(waits))
        return stored, rows.take(np.flatnonzero(~waits))

    def _match_stored_right(self, left: JoinRows) -> Iterator[tuple[Emission, Ints]]:
        """Yield the pairs of left rows with stored right rows."""
        if len(left) and not self._join.is_empty:
            for right in self._right.find_candidates(left, self._join.lower, self._join.upper):
                yield from self._match_pairs(left, right)

    def _match_stored_left(self, right: JoinRows) -> Iterator[tuple[Emission, Ints]]:
        """Yield the pairs of right rows with stored left rows."""
        if len(right) and not self._join.is_empty:
            for left in self._left.find_candidates(right, -self._join.upper, -self._join.lower):
                yield from self._match_pairs(left, right)

    def _match_pairs(
        self, left: JoinRows, right: JoinRows, *, second: Kind | None = None
    ) -> Iterator[tuple[Emission, Ints]]:
        """Yield the pairs of some rows, and the index in the call of the later row of each.

        ``second``: the side whose row must have come after the other one.
        """
        if not len(left) or not len(right) or self._join.is_empty:
            return
        pair, before = self._pair, left.matched.copy()
        alone = pair.how in LEFT_ALONE and pair.condition is None and second is None
        if alone:
            left.matched[:] |= self._matching.find_matched(left, right)
            if self._join.joins_late:
                right.matched[:] |= self._matching.find_covered(left, right)
        for i, j in () if alone else self._matching.find_pairs(left, right):
            if second is not None:
                in_turn = (left.arrival[i] > right.arrival[j]) == (second == "left")
                i, j = i[in_turn], j[in_turn]
            holding = self._find_holding(left, i, right, j)
            if holding is not None:
                i, j = i[holding], j[holding]
            left.matched[i] = right.matched[j] = True
            if pair.how not in LEFT_ALONE and len(i):
                later = np.maximum(left.arrival[i], right.arrival[j])
                yield (
                    self._make_emission(self._pair_rows(left, i, right, j), "element"),
                    later,
                )
        if pair.how == "semi":
            fresh = left.places_of(left.matched & ~before)
            later = np.maximum(left.arrival[fresh], int(right.arrival.max()))
            names = [*self._keys, *pair.left]
            alone = left.table.select(names).take(pa.array(fresh))
            yield self._make_emission(alone, "element"), later

    def _find_holding(self, left: JoinRows, i: Ints, right: JoinRows, j: Ints) -> Ints | None:
        pair = self._pair
        if pair.condition is None:
            return None
        pairs = pair.table(left.table, pa.array(i), right.table, pa.array(j))
        return join_pairs.holds(pair.condition, pairs)

    # ---- results

    def _sort_emissions(self, emissions: Iterator[tuple[Emission, Ints]]) -> Iterator[Emission]:
        """Sort the pairs of a call by the arrival of their later rows."""
        found = [(emission.results, later) for emission, later in emissions]
        if found:
            results = pa.concat_tables([results for results, _ in found])
            order = np.argsort(np.concatenate([later for _, later in found]), kind="stable")
            table = results.take(pa.array(order))
            yield Emission(table, pa.table({}), Counters(fired=len(table)))
