"""The temporal join strategy: rows are buffered; the newest version of each key is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.operators.base import Emission, Timers
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.joins import pairs as join_pairs
from gpu_windows.operators.joins.base import JoinOperator
from gpu_windows.operators.joins.join_index import are_keys
from gpu_windows.operators.joins.match_flags import NUMBER
from gpu_windows.operators.joins.rows import Flags, JoinRows
from gpu_windows.operators.joins.stored_side import Needs
from gpu_windows.operators.joins.versions import VERSIONS, Versions, codes_of
from gpu_windows.operators.state.hashes import without
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.kinds.pairs import TemporalJoinPlan
from gpu_windows.rules import LONG_MAX, LONG_MIN

Ints = NDArray[np.int64]

#: The owner of the saved numbers, and their names.
_OWNER, _NUMBERS = "temporal join", ("watermark", "next row")
#: Rows of both sides are buffered by time, without lookups by key or match flags.
_NEEDS = Needs(tracks=False, emits_at_end=True, is_probed=False)


class TemporalJoinOperator(JoinOperator):
    """Left rows with the version of their key at their time.

    Rows of both sides are buffered until the watermark reaches their time. Then left rows are
    emitted with the newest of the buffered versions and the stored one of their key, and the newest
    version of each key is stored. So the state of a key is one version, and a watermark costs as
    much as the keys of the rows that it reaches.

    Parameters
    ----------
    plan : TemporalJoinPlan
    kernels : Kernels
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    in_order : bool
        Whether the rows of an emission are in the order in which left rows arrived.

    Notes
    -----
    Source: org.apache.flink.table.runtime.operators.join.temporal.TemporalRowTimeJoinOperator,
    which removes versions of a key at right_rows timers: some later than here.
    """

    def __init__(
        self,
        plan: TemporalJoinPlan,
        kernels: Kernels,
        *,
        trace: bool = False,
        in_order: bool = True,
    ) -> None:
        self._join, self._in_order = plan.query.join, in_order
        super().__init__(
            plan,
            self._join,
            kernels,
            upper=0,
            right=self._join.right,
            retention=(0, 0),
            needs=(_NEEDS, _NEEDS),
            trace=trace,
        )
        self._versions = self._open_versions(MemoryLog())
        self._watermark, self._next = LONG_MIN, 0

    def _open_versions(self, log: StateLog) -> Versions:
        return Versions(log, self._indexes[1], self._join.valid_for)

    # ---- interface of an operator

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Buffer rows of both sides; none of them is late."""
        status = self._status_of(batch)
        for number, places in enumerate(self._find_places(batch, status)):
            self._sides[number].add(self._select_new(batch, places, number))
        yield self._acknowledge(batch, status)

    def _select_new(self, batch: pa.Table, places: Ints, side: int) -> JoinRows:
        """Return the rows of a side; left ones are numbered, versions with null keys dropped."""
        table = self._select(batch, places, side)
        if side == 0:
            table = table.append_column(NUMBER, pa.array(self._next + np.arange(len(table))))
            self._next += len(table)
        rows = self._indexes[side].make_rows(table, np.zeros(len(table), np.bool_))
        has_key = are_keys(rows.codes)
        return rows if side == 0 or has_key.all() else rows.take(np.flatnonzero(has_key))

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Emit the left rows that the watermark reaches; store the newest versions that it does."""
        if watermark <= self._watermark:
            return
        self._watermark = watermark
        right = [rows for rows in self._right.expire(watermark) if len(rows)]
        keys = codes_of(right)
        stored = self._versions.of(keys, until=watermark)
        yield from self._emit_left(self._left.expire(watermark), [*stored, *right], keys)
        if watermark == LONG_MAX:
            self._versions.clear()
        else:
            self._versions.keep(stored, right, watermark)

    # ---- results

    def _emit_left(
        self, left: Iterable[JoinRows], versions: Sequence[JoinRows], keys: Ints
    ) -> Iterator[Emission]:
        """Yield left rows with their versions: those of ``keys`` are in ``versions``."""
        found = (
            self._add_versions(part, [*self._find_stored(part, keys), *versions])
            for rows in left
            for part in _split_rows(rows)
        )
        for table, _ in _sort_emissions(found) if self._in_order else found:
            if len(table):
                yield self._make_emission(table, "event_time")

    def _find_stored(self, left: JoinRows, keys: Ints) -> list[JoinRows]:
        """Return the stored versions of left rows, except those of ``keys``."""
        return self._versions.of(without(codes_of([left]), keys))

    def _add_versions(self, left: JoinRows, versions: Sequence[JoinRows]) -> tuple[pa.Table, Ints]:
        """Return left rows with the version of each, and the numbers of these left rows.

        ``versions``: in order of arrival.
        """
        best = self._find_nearest(left, versions, rules.BEFORE)
        found = best.has_match
        if found.any():
            right_rows, places = best.rows(self._join.right)
            self._drop_unfit(found, left, right_rows, places)
        i = np.arange(len(left)) if self._pair.how == "left" else np.flatnonzero(found)
        numbers = left.table.column(NUMBER).to_numpy()[i]
        if not found.any():
            return self._fill_unmatched(left.take(i)), numbers
        of_each = pa.array(places[i], mask=~found[i])
        versions_of_rows = right_rows.select(self._pair.right).take(of_each)
        return self._side_by_side(left, i, versions_of_rows), numbers

    def _drop_unfit(self, found: Flags, left: JoinRows, right_rows: pa.Table, places: Ints) -> None:
        """Unset ``found`` of left rows whose version is deleted or fails the condition."""
        pair, deleted = self._pair, self._join.deleted
        if deleted is not None:
            is_deleted = pc.fill_null(right_rows.column(deleted), fill_value=False).to_numpy()
            found[found] = ~is_deleted[places[found]]
        if pair.condition is not None:
            i = np.flatnonzero(found)
            pairs = pair.table(left.table, pa.array(i), right_rows, pa.array(places[i]))
            holding = join_pairs.holds(pair.condition, pairs)
            assert holding is not None, "there is a condition"
            found[np.delete(i, holding)] = False

    def state_size(self) -> dict[str, int]:
        """Return the number of buffered rows of each side, and of stored versions."""
        return {**super().state_size(), VERSIONS: len(self._versions)}

    # ---- between calls

    def _restore_state(self, log: StateLog) -> StateLog:
        """Open the stored state; versions are read when rows of their keys are due."""
        self._watermark, self._next = log.numbers(_OWNER, _NUMBERS) or (self._watermark, 0)
        for side in self._sides:
            side.restore(log, 0)
        self._versions = self._open_versions(log)
        return log

    def _save(self, stored: StateLog) -> None:
        """Write the new rows; versions are written as the watermark moves."""
        for side in self._sides:
            side.save()
        numbers = (self._watermark, self._next)
        stored.set_numbers(_OWNER, dict(zip(_NUMBERS, numbers, strict=True)))

    def _next_timers(self, stored: StateLog) -> Timers:
        """Return the next watermark that emits rows, or supersedes or ends a version.

        Late rows are emitted when it moves.
        """
        del stored
        first = min(self._left.next_end, self._right.next_end, self._versions.next_end)
        return None if first == LONG_MAX else max(first, self._watermark + 1), None


def _split_rows(rows: JoinRows) -> Iterator[JoinRows]:
    """Yield rows in parts of at most `pairs.PAIRS` rows."""
    for begin in range(0, len(rows), join_pairs.PAIRS):
        yield rows.take(np.arange(begin, min(begin + join_pairs.PAIRS, len(rows))))


def _sort_emissions(found: Iterator[tuple[pa.Table, Ints]]) -> Iterator[tuple[pa.Table, Ints]]:
    """Yield all rows as one table, in order of their numbers."""
    parts = [*found]
    if parts:
        table = pa.concat_tables([each for each, _ in parts], promote_options="default")
        numbers = np.concatenate([each for _, each in parts])
        order = np.argsort(numbers)
        yield table.take(pa.array(order)), numbers[order]
