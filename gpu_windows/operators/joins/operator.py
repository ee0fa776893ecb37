"""The interval join strategy: rows sorted by key and time, ranges found, pairs made in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.functions.join import LEFT_ALONE
from gpu_windows.functions.two_inputs import SIDE, TIME
from gpu_windows.operators.base import Emission, StatefulOperator, Timers
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.lanes import to_lane
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.joins import pairs as together
from gpu_windows.operators.joins.arrangement import NULLS, Arrangement
from gpu_windows.operators.joins.matching import Matching
from gpu_windows.operators.joins.nearest import Nearest
from gpu_windows.operators.joins.results import PairResults
from gpu_windows.operators.joins.rows import JoinRows
from gpu_windows.operators.joins.side import Side
from gpu_windows.operators.joins.stored_side import KINDS, Needs
from gpu_windows.operators.rejected import Rejected, given_back
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.plan import IntervalJoinPlan
from gpu_windows.rules import LONG_MAX, LONG_MIN

Ints = NDArray[np.int64]
Kind = Literal["left", "right"]

#: The numbers that are saved: of the next row of each side, too.
_OWNER, _NUMBERS = "join", ("watermark", *(f"next {kind}" for kind in KINDS))
_DIRECTIONS = {"before": rules.BEFORE, "after": rules.AFTER, "either": rules.EITHER}


class IntervalJoinOperator(StatefulOperator[StateLog]):
    """Pairs of two inputs within bounds of time.

    Parameters
    ----------
    plan : IntervalJoinPlan
        Of a `JoinInTime`.
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
        # configuration
        self._join = join = plan.join
        self._keys = plan.query.keys
        self._kernels = kernels
        self._matching = Matching(kernels, join.lower, join.upper)
        self._in_order = in_order
        self._results = PairResults(plan, trace=trace)
        self._columns = [
            (*self._keys, TIME, *columns) for columns in (join.pair.left, join.pair.right)
        ]
        # state
        encoder = KeyEncoder([plan.query.schema.field(name).type for name in self._keys])
        self._arrangements = [
            Arrangement(
                self._keys,
                encoder,
                self._matching,
                None if join.pair.null_safe else null,
                plan.lacking_of(columns),
            )
            for null, columns in zip(NULLS, self._columns, strict=True)
        ]
        self._left, self._right = self._sides = [self._side(number) for number in range(2)]
        self._watermark = join.clock(LONG_MIN)

    def _side(self, number: int) -> Side:
        join = self._join
        finds = join.nearest is None or number == 1  # left rows look for right ones
        needs = Needs(join.tracks[number], join.tells_at_end[number], finds)
        return Side(number, join.retention[number], needs, self._arrangements[number])

    # ---- the face of an operator

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Take rows of both sides; give the pairs that they make."""
        lane = to_lane(batch.column(TIME))
        first, last = self._join.usable_ticks
        status = np.zeros(len(batch), np.int8)
        if not self._join.joins_late:
            status[lane.values < self._watermark] = rules.LATE
        status[(lane.values < first) | (lane.values > last)] = rules.OUT_OF_RANGE
        if len(lane.valid):
            status[~lane.valid] = rules.NULL
        is_left = batch.column(SIDE).to_numpy()
        left, right = (
            self._new(batch, np.flatnonzero((status == 0) & (is_left == side)), side=side)
            for side in (True, False)
        )
        late: Iterator[tuple[Emission, Ints]] = iter(())
        if self._join.joins_late:
            new = zip((left, right), self._join.reach, strict=True)
            (left, late_left), (right, late_right) = (self._parted(*each) for each in new)
            late = self._late_matches(left, right, late_left, late_right, status)
        emissions = chain(self._matches(left, right), late)
        yield from self._ordered(emissions) if self._in_order else (e for e, _ in emissions)
        self._left.add(left)
        self._right.add(right)
        rejected = Rejected.of(status)
        counters = rejected.counts() + self._kernels.counted()
        yield Emission(self._results.nothing, given_back(batch, rejected), counters)

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Drop the rows that find no partner any more; give those that never had one."""
        watermark = self._join.clock(watermark)
        if watermark <= self._watermark:
            return
        self._watermark = watermark
        for side in self._sides:
            for rows in side.cut(watermark):
                if len(rows):
                    yield from self._at_end(rows)

    def _at_end(self, rows: JoinRows) -> Iterator[Emission]:
        """Yield what rows give that are dropped."""
        if self._join.nearest is None:
            yield self._results.emission(self._results.unmatched(rows.by_time()), "event_time")
            return
        for begin in range(0, len(rows), together.PAIRS):
            part = rows.take(np.arange(begin, min(begin + together.PAIRS, len(rows))))
            table = self._with_nearest(part)
            if len(table):
                yield self._results.emission(table, "event_time")

    def _with_nearest(self, left: JoinRows) -> pa.Table:
        """Return left rows with the nearest right row of each."""
        best = Nearest(left.ts, _DIRECTIONS[self._join.nearest or "either"])
        bounds = self._join.lower, self._join.upper
        for right in () if self._join.is_empty else self._right.partners(left, *bounds):
            best.offer(right, self._matching.nearest(left, right, best.direction))
        found = best.found
        i = np.arange(len(left)) if self._join.pair.how == "left" else np.flatnonzero(found)
        if not found.any():
            return self._results.unmatched(left.take(i).by_time())
        its, places = best.rows(self._join.pair.right)
        return self._results.side_by_side(left, i, its.take(pa.array(places[i], mask=~found[i])))

    def _restore_state(self, log: StateLog) -> StateLog:
        """Know what the log has: rows are read when others of their keys and times come."""
        self._watermark, *numbers = log.numbers(_OWNER, _NUMBERS) or (self._watermark, 0, 0)
        for side, number in zip(self._sides, numbers, strict=True):
            side.restore(log, number)
        return log

    def _save(self, stored: StateLog) -> None:
        """Write the new rows, and which of the others have met a partner."""
        numbers = (self._watermark, *(side.save() for side in self._sides))
        stored.set_numbers(_OWNER, dict(zip(_NUMBERS, numbers, strict=True)))

    def _next_timers(self, stored: StateLog) -> Timers:
        """Return the watermark at which rows are dropped, or are to be told."""
        del stored
        first = min(side.next_end for side in self._sides)
        return None if first == LONG_MAX else first, None

    def state_size(self) -> dict[str, int]:
        """Return the number of rows of each side that are kept."""
        return {side.kind: len(side) for side in self._sides}

    # ---- rows

    def _new(self, batch: pa.Table, places: Ints, *, side: bool) -> JoinRows:
        table = batch.select(self._columns[not side]).take(pa.array(places)).combine_chunks()
        met = np.zeros(len(places), np.bool_)
        return self._arrangements[not side].rows(table, met, arrival=places)

    # ---- pairs

    def _matches(self, left: JoinRows, right: JoinRows) -> Iterator[tuple[Emission, Ints]]:
        """Yield what new rows give: with those of the other side that are there, and each other."""
        if self._join.nearest is None:
            yield from self._with_right(left)
            yield from self._met(left, right)
            yield from self._with_left(right)

    def _late_matches(
        self, left: JoinRows, right: JoinRows, late_left: JoinRows, late_right: JoinRows,
        status: NDArray[np.int8],
    ) -> Iterator[tuple[Emission, Ints]]:  # fmt: skip
        """Yield what rows give that are not kept: each with those that were there before it.

        Those that meet none come alone, or it is noted in ``status`` which of them are late.
        """
        yield from self._with_right(late_left)
        yield from self._met(late_left, right, second="left")
        yield from self._met(left, late_right, second="right")
        yield from self._with_left(late_right)
        for rows, tell in zip((late_left, late_right), self._join.tells_at_end, strict=True):
            alone = rows.take(np.flatnonzero(~rows.met)).by_time()
            if not tell:
                status[alone.arrival[alone.ts < self._watermark]] = rules.LATE
            elif len(alone):
                yield (
                    self._results.emission(self._results.unmatched(alone), "element"),
                    alone.arrival,
                )

    def _parted(self, rows: JoinRows, reach: int) -> tuple[JoinRows, JoinRows]:
        """Return the rows that wait for partners, and those for which it is too late."""
        waits = rules.waits(rows.ts, reach, self._watermark)
        kept = rows if waits.all() else rows.take(np.flatnonzero(waits))
        return kept, rows.take(np.flatnonzero(~waits))

    def _with_right(self, left: JoinRows) -> Iterator[tuple[Emission, Ints]]:
        """Yield what left rows give with the right rows that are kept."""
        if len(left) and not self._join.is_empty:
            for right in self._right.partners(left, self._join.lower, self._join.upper):
                yield from self._met(left, right)

    def _with_left(self, right: JoinRows) -> Iterator[tuple[Emission, Ints]]:
        """Yield what right rows give with the left rows that are kept."""
        if len(right) and not self._join.is_empty:
            for left in self._left.partners(right, -self._join.upper, -self._join.lower):
                yield from self._met(left, right)

    def _met(
        self, left: JoinRows, right: JoinRows, *, second: Kind | None = None
    ) -> Iterator[tuple[Emission, Ints]]:
        """Yield the pairs of some rows, and for each which row of the call made it.

        ``second``: the side whose row must have come after the other one.
        """
        if not len(left) or not len(right) or self._join.is_empty:
            return
        pair, before = self._join.pair, left.met.copy()
        alone = pair.how in LEFT_ALONE and pair.condition is None and second is None
        if alone:
            left.met[:] |= self._matching.matched(left, right)
            if self._join.joins_late:
                right.met[:] |= self._matching.covered(left, right)
        for i, j in () if alone else self._matching.pairs(left, right):
            if second is not None:
                in_turn = (left.arrival[i] > right.arrival[j]) == (second == "left")
                i, j = i[in_turn], j[in_turn]
            held = self._held(left, i, right, j)
            if held is not None:
                i, j = i[held], j[held]
            left.met[i] = right.met[j] = True
            if pair.how not in LEFT_ALONE and len(i):
                later = np.maximum(left.arrival[i], right.arrival[j])
                yield (
                    self._results.emission(self._results.paired(left, i, right, j), "element"),
                    later,
                )
        if pair.how == "semi":
            fresh = np.flatnonzero(left.met & ~before)
            later = np.maximum(left.arrival[fresh], int(right.arrival.max()))
            names = [*self._keys, *pair.left]
            alone = left.table.select(names).take(pa.array(fresh))
            yield self._results.emission(alone, "element"), later

    def _held(self, left: JoinRows, i: Ints, right: JoinRows, j: Ints) -> Ints | None:
        pair = self._join.pair
        if pair.condition is None:
            return None
        pairs = pair.table(left.table, pa.array(i), right.table, pa.array(j))
        return together.holds(pair.condition, pairs)

    # ---- results

    def _ordered(self, emissions: Iterator[tuple[Emission, Ints]]) -> Iterator[Emission]:
        """Put the pairs of a call into the order in which their later rows came."""
        found = [(emission.results, later) for emission, later in emissions]
        if found:
            results = pa.concat_tables([results for results, _ in found])
            order = np.argsort(np.concatenate([later for _, later in found]), kind="stable")
            table = results.take(pa.array(order))
            yield Emission(table, pa.table({}), Counters(fired=len(table)))
