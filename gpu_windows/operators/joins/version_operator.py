"""The version join strategy: rows wait for the watermark, and of each key one version is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.functions.two_inputs import SIDE, TIME
from gpu_windows.operators.base import Emission, StatefulOperator, Timers
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.lanes import to_lane
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.joins import pairs as together
from gpu_windows.operators.joins.arrangement import NULLS, Arrangement, are_keys
from gpu_windows.operators.joins.matching import Matching
from gpu_windows.operators.joins.nearest import Nearest
from gpu_windows.operators.joins.partners import NUMBER
from gpu_windows.operators.joins.results import PairResults
from gpu_windows.operators.joins.rows import Flags, JoinRows
from gpu_windows.operators.joins.side import Side
from gpu_windows.operators.joins.stored_side import Needs
from gpu_windows.operators.joins.versions import VERSIONS, Versions, codes_of
from gpu_windows.operators.rejected import Rejected, given_back
from gpu_windows.operators.state.hashes import without
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.plan import VersionJoinPlan
from gpu_windows.rules import LONG_MAX, LONG_MIN

Ints = NDArray[np.int64]

#: The numbers that are saved, that of the next left row among them, and whose they are.
_OWNER, _NUMBERS = "version join", ("watermark", "next row")
#: Rows of both sides wait by time: no row is looked for by its key, nor has to know its partner.
_WAIT = Needs(tracks=False, tells_at_end=True, finds=False)


class VersionJoinOperator(StatefulOperator[StateLog]):
    """Left rows with the version of their key at their time.

    Rows of both sides wait until the watermark reaches their time. Then left rows are given with
    the newest of the versions that came with them and of the one that is kept of their key; and of
    each key that has a newer version that one is kept. So what is kept of a key is one version,
    whatever comes, and the watermark costs the keys of rows that it reaches.

    Parameters
    ----------
    plan : VersionJoinPlan
    kernels : Kernels
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    in_order : bool
        Whether rows that come together are in the order in which left rows arrived.

    Notes
    -----
    Source: org.apache.flink.table.runtime.operators.join.temporal.TemporalRowTimeJoinOperator,
    which removes versions of a key at its timers: some later than here.
    """

    def __init__(
        self,
        plan: VersionJoinPlan,
        kernels: Kernels,
        *,
        trace: bool = False,
        in_order: bool = True,
    ) -> None:
        # configuration
        self._join = join = plan.join
        self._kernels, self._in_order = kernels, in_order
        self._matching = Matching(kernels, join.lower, 0)
        self._results = PairResults(plan, trace=trace)
        keys = plan.query.keys
        self._columns = [(*keys, TIME, *columns) for columns in (join.pair.left, join.right)]
        # state
        encoder = KeyEncoder([plan.query.schema.field(name).type for name in keys])
        self._arrangements = [
            Arrangement(
                keys,
                encoder,
                self._matching,
                None if join.pair.null_safe else null,
                plan.lacking_of(columns),
            )
            for null, columns in zip(NULLS, self._columns, strict=True)
        ]
        self._left, self._right = self._sides = [
            Side(number, 0, _WAIT, self._arrangements[number]) for number in range(2)
        ]
        self._versions = self._versions_in(MemoryLog())
        self._watermark, self._next = LONG_MIN, 0

    def _versions_in(self, log: StateLog) -> Versions:
        return Versions(log, self._arrangements[1], self._join.valid_for)

    # ---- the face of an operator

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Take rows of both sides, which wait; none of them is late."""
        lane = to_lane(batch.column(TIME))
        first, last = self._join.usable_ticks
        status = np.zeros(len(batch), np.int8)
        status[(lane.values < first) | (lane.values > last)] = rules.OUT_OF_RANGE
        if len(lane.valid):
            status[~lane.valid] = rules.NULL
        is_left = batch.column(SIDE).to_numpy()
        for number, side in enumerate(self._sides):
            places = np.flatnonzero((status == 0) & (is_left == (number == 0)))
            side.add(self._new(batch, places, number))
        rejected = Rejected.of(status)
        counters = rejected.counts() + self._kernels.counted()
        yield Emission(self._results.nothing, given_back(batch, rejected), counters)

    def _new(self, batch: pa.Table, places: Ints, side: int) -> JoinRows:
        """Return the rows of a side, left ones numbered, versions without keys left out."""
        table = batch.select(self._columns[side]).take(pa.array(places)).combine_chunks()
        if side == 0:
            table = table.append_column(NUMBER, pa.array(self._next + np.arange(len(table))))
            self._next += len(table)
        rows = self._arrangements[side].rows(table, np.zeros(len(table), np.bool_))
        return rows if side == 0 else rows.take(np.flatnonzero(are_keys(rows.codes)))

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Give the left rows that the watermark reaches; keep the newest versions that it does."""
        if watermark <= self._watermark:
            return
        self._watermark = watermark
        right = [rows for rows in self._right.cut(watermark) if len(rows)]
        keys = codes_of(right)
        known = self._versions.of(keys, until=watermark)
        yield from self._given(self._left.cut(watermark), [*known, *right], keys)
        if watermark == LONG_MAX:
            self._versions.clear()
        else:
            self._versions.keep(known, right, watermark)

    # ---- results

    def _given(
        self, left: Iterable[JoinRows], versions: Sequence[JoinRows], keys: Ints
    ) -> Iterator[Emission]:
        """Yield left rows with their versions: those at hand, of these keys all, or stored ones."""
        found = (
            self._with_versions(part, [*self._stored_of(part, keys), *versions])
            for rows in left
            for part in _parts(rows)
        )
        for table, _ in _ordered(found) if self._in_order else found:
            if len(table):
                yield self._results.emission(table, "event_time")

    def _stored_of(self, left: JoinRows, keys: Ints) -> list[JoinRows]:
        """Return the stored versions of left rows, but of some keys."""
        return self._versions.of(without(codes_of([left]), keys))

    def _with_versions(self, left: JoinRows, versions: Sequence[JoinRows]) -> tuple[pa.Table, Ints]:
        """Return left rows with the version of each, and the numbers of these left rows.

        ``versions``: in the order in which they came.
        """
        best = Nearest(left.ts, rules.BEFORE)
        for rows in versions:
            best.offer(rows, self._matching.nearest(left, rows, best.direction))
        found = best.found
        if found.any():
            its, places = best.rows(self._join.right)
            self._leave_out(found, left, its, places)
        i = np.arange(len(left)) if self._join.pair.how == "left" else np.flatnonzero(found)
        numbers = left.table.column(NUMBER).to_numpy()[i]
        if not found.any():
            return self._results.unmatched(left.take(i)), numbers
        of_each = pa.array(places[i], mask=~found[i])
        shown = its.select(self._join.pair.right).take(of_each)
        return self._results.side_by_side(left, i, shown), numbers

    def _leave_out(self, found: Flags, left: JoinRows, its: pa.Table, places: Ints) -> None:
        """Take left rows out of ``found`` whose version is deleted or does not fit."""
        pair, deleted = self._join.pair, self._join.deleted
        if deleted is not None:
            is_deleted = pc.fill_null(its.column(deleted), fill_value=False).to_numpy()
            found[found] = ~is_deleted[places[found]]
        if pair.condition is not None:
            i = np.flatnonzero(found)
            pairs = pair.table(left.table, pa.array(i), its, pa.array(places[i]))
            held = together.holds(pair.condition, pairs)
            assert held is not None, "there is a condition"
            found[np.delete(i, held)] = False

    def state_size(self) -> dict[str, int]:
        """Return the number of rows of each side that wait, and of versions that are kept."""
        return {**{side.kind: len(side) for side in self._sides}, VERSIONS: len(self._versions)}

    # ---- between calls

    def _restore_state(self, log: StateLog) -> StateLog:
        """Know what the log has: versions are read when rows of their keys are due."""
        self._watermark, self._next = log.numbers(_OWNER, _NUMBERS) or (self._watermark, 0)
        for side in self._sides:
            side.restore(log, 0)
        self._versions = self._versions_in(log)
        return log

    def _save(self, stored: StateLog) -> None:
        """Write the new rows; versions are written as the watermark moves."""
        for side in self._sides:
            side.save()
        numbers = (self._watermark, self._next)
        stored.set_numbers(_OWNER, dict(zip(_NUMBERS, numbers, strict=True)))

    def _next_timers(self, stored: StateLog) -> Timers:
        """Return the watermark at which rows are given, or a version is superseded or ends.

        Late rows are given when it moves.
        """
        del stored
        first = min(self._left.next_end, self._right.next_end, self._versions.next_end)
        return None if first == LONG_MAX else max(first, self._watermark + 1), None


def _parts(rows: JoinRows) -> Iterator[JoinRows]:
    """Yield rows in parts that are not too large."""
    for begin in range(0, len(rows), together.PAIRS):
        yield rows.take(np.arange(begin, min(begin + together.PAIRS, len(rows))))


def _ordered(found: Iterator[tuple[pa.Table, Ints]]) -> Iterator[tuple[pa.Table, Ints]]:
    """Yield all rows together, in order of their numbers."""
    parts = [*found]
    if parts:
        table = pa.concat_tables([each for each, _ in parts], promote_options="default")
        numbers = np.concatenate([each for _, each in parts])
        order = np.argsort(numbers)
        yield table.take(pa.array(order)), numbers[order]
