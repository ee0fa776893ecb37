"""Stored rows of a side of an interval join, in memory and in a log."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_windows.operators.joins.join_index import JoinIndex
from gpu_windows.operators.joins.rows import JoinRows, Runs
from gpu_windows.operators.joins.stored_side import KINDS, Needs, StoredSide
from gpu_windows.operators.state.log import StateLog
from gpu_windows.rules import LONG_MAX, add_saturating


class Side:
    """Rows of a side that may still be matched.

    Parameters
    ----------
    number : int
        0: left, 1: right.
    retention : int
        How long a row is stored after its time, in ticks.
    needs : Needs
    index : JoinIndex
    """

    def __init__(self, number: int, retention: int, needs: Needs, index: JoinIndex) -> None:
        self.kind = KINDS[number]
        self._number, self._retention, self._needs = number, retention, needs
        self._index = index
        self._runs = Runs()  # without a log all rows, otherwise those of the call
        self._stored: StoredSide | None = None

    def __len__(self) -> int:
        return len(self._runs) + (0 if self._stored is None else len(self._stored))

    def find_candidates(self, rows: JoinRows, lower: int, upper: int) -> Iterator[JoinRows]:
        """Yield a superset of the rows that match rows of the other side, in order of arrival.

        The caller sets their match flags, which are read when it asks for the next rows.
        """
        if self._stored is not None:
            yield from self._stored.find_candidates(rows, lower, upper)
        yield from self._runs.within(*rows.bounds(lower, upper))

    def add(self, rows: JoinRows) -> None:
        """Add rows."""
        self._runs.add(rows)

    def expire(self, watermark: int) -> Iterator[JoinRows]:
        """Drop the rows that the watermark expires; yield those that emit results then."""
        limit = LONG_MAX if watermark == LONG_MAX else add_saturating(watermark, -self._retention)
        if self._stored is not None:
            yield from self._stored.expire(limit)
        yield from self._runs.expire(limit, emits_unmatched=self._needs.emits_at_end)

    @property
    def next_end(self) -> int:
        """The next watermark that expires rows, or LONG_MAX."""
        which = 0 if self._needs.emits_at_end else 1
        ends = [run.span[which] for run in self._runs]
        if self._stored is not None:
            ends += self._stored.ends
        return min((add_saturating(time, self._retention) for time in ends), default=LONG_MAX)

    # ---- in a log

    def restore(self, log: StateLog, next_number: int) -> None:
        """Open the rows of a log; ``next_number``: see `StoredSide`."""
        self._stored = StoredSide(log, self._number, self._needs, self._index, next_number)

    def save(self) -> int:
        """Write what has changed; return the number of the next row."""
        assert self._stored is not None, "a log comes first"
        self._stored.append(self._runs)
        self._runs.clear()
        return self._stored.next_number
