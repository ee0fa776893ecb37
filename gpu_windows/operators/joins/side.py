"""The rows that an interval join keeps of a side: those in memory, and those in a log."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_windows.operators.joins.arrangement import Arrangement
from gpu_windows.operators.joins.rows import JoinRows, Runs
from gpu_windows.operators.joins.stored_side import KINDS, Needs, StoredSide
from gpu_windows.operators.state.log import StateLog
from gpu_windows.rules import LONG_MAX, shifted


class Side:
    """The rows of a side that may find a partner.

    Parameters
    ----------
    number : int
        0: left, 1: right.
    retention : int
        How long a row is kept after its time, in ticks.
    needs : Needs
    arrangement : Arrangement
    """

    def __init__(self, number: int, retention: int, needs: Needs, arrangement: Arrangement) -> None:
        self.kind = KINDS[number]
        self._number, self._retention, self._needs = number, retention, needs
        self._arrangement = arrangement
        self._runs = Runs(arrangement.rows)  # without a log all rows, else those of the call
        self._stored: StoredSide | None = None

    def __len__(self) -> int:
        return len(self._runs) + (0 if self._stored is None else len(self._stored))

    def partners(self, rows: JoinRows, lower: int, upper: int) -> Iterator[JoinRows]:
        """Yield rows among which those are that are near some rows of the other side.

        They come in the order of their arrival. Which of them have met a partner is noted when the
        next ones are asked for.
        """
        if self._stored is not None:
            yield from self._stored.partners(rows, lower, upper)
        yield from self._runs.within(*rows.bounds(lower, upper))

    def add(self, rows: JoinRows) -> None:
        """Keep rows."""
        self._runs.add(rows)

    def cut(self, watermark: int) -> Iterator[JoinRows]:
        """Drop the rows that the watermark is past; yield those of them that are to be told."""
        limit = LONG_MAX if watermark == LONG_MAX else shifted(watermark, -self._retention)
        if self._stored is not None:
            yield from self._stored.cut(limit)
        yield from self._runs.cut(limit, tell=self._needs.tells_at_end)

    @property
    def next_end(self) -> int:
        """The watermark at which there is something to drop; LONG_MAX if there is none."""
        which = 0 if self._needs.tells_at_end else 1
        ends = [bounds[which] for bounds in self._runs.bounds]
        if self._stored is not None:
            ends += self._stored.ends
        return min((shifted(time, self._retention) for time in ends), default=LONG_MAX)

    # ---- in a log

    def restore(self, log: StateLog, next_number: int) -> None:
        """Know the rows that a log has; ``next_number``: see `StoredSide`."""
        self._stored = StoredSide(log, self._number, self._needs, self._arrangement, next_number)

    def save(self) -> int:
        """Write what has changed; return the number of the next row."""
        assert self._stored is not None, "a log comes first"
        self._stored.append(self._runs)
        self._runs.clear()
        return self._stored.next_number
