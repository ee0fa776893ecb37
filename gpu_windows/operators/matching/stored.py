"""Rows that wait and what is kept of keys in a store, and the keys that a call has in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.lanes import one_chunk, to_lane
from gpu_windows.operators.columns.ranges import offsets
from gpu_windows.operators.matching.kept import Kept, widths
from gpu_windows.operators.state.entries import LISTS, Entries, lists_of
from gpu_windows.operators.state.keyed_table import HASH, TIMERS, KeyedTable
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.pending_rows import PendingRows
from gpu_windows.planning.plan import MatchPlan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.rules.pattern_matching.layout import Settings

Ints = NDArray[np.int64]

#: What a log calls rows that wait for the watermark, and keys with their rows.
WAITING, KEYS = "match waiting", "match keys"
#: Columns of partial matches and of complete ones that wait, a list of numbers each.
PARTIALS, COMPLETE = "partials", "complete"
#: The numbers that are saved, and whose they are.
_OWNER, _NUMBERS = "match", ("watermark", "next row")


class StoredMatches:
    """All that a query of a pattern keeps.

    Parameters
    ----------
    plan : MatchPlan
    settings : Settings
    keys : KeyEncoder
    log : StateLog
        Empty, or as `save` has left it.

    Attributes
    ----------
    watermark : int
        The last one.
    waiting : PendingRows
    kept : Kept
        Of the keys that are in memory.
    """

    def __init__(
        self, plan: MatchPlan, settings: Settings, keys: KeyEncoder, log: StateLog
    ) -> None:
        self._settings, self._keys, self._log = settings, keys, log
        self._time, self._within = plan.query.time, plan.match.within
        self.watermark, number = log.numbers(_OWNER, _NUMBERS) or (LONG_MIN, 0)
        self.waiting = PendingRows(log, WAITING, time=self._time, next_number=number)
        self._table = KeyedTable(log, KEYS, lambda each: {"rows": each.kept_count})
        self._nothing = self.kept = Kept.nothing(rows_schema(plan), settings)

    def load(self, codes: Ints, watermark: int) -> None:
        """Have some keys in memory, each given once, and those of which something is too long."""
        self._take(self._table.load(self._keys.hashes()[codes]))
        if self._within is not None:
            self._take(self._table.load_due(watermark))

    def _take(self, found: Entries | None) -> None:
        if found is None:
            return
        table = found.table
        names = [name for name in table.column_names if name.startswith("key")]
        codes = self._keys.encode([table.column(name) for name in names])
        lists = one_chunk(table.column(LISTS))
        rows = self._nothing.rows
        if found.kept is not None:
            rows = found.kept.take(lists.flatten())
        of_matches = (one_chunk(table.column(name)) for name in (PARTIALS, COMPLETE))
        (counts, partials), (waits, waiting) = map(_matches, of_matches, widths(self._settings))
        lengths = to_lane(lists.value_lengths()).values
        more = Kept(codes, rows, lengths, counts, partials, waits, waiting)
        self.kept = Kept.together([self.kept, more])

    def are_due(self, touched: Ints, watermark: int) -> NDArray[np.bool_]:
        """Return which keys in memory are among some, or have what is too long at a watermark."""
        mine = np.isin(self.kept.codes, touched)
        return mine | (self._over(self.kept) <= watermark) if self._within is not None else mine

    def forget(self) -> None:
        """Forget everything: no row comes any more."""
        self._table.clear()
        self.kept = self._nothing

    def save(self) -> None:
        """Write the rows that are new, and the keys that are in memory."""
        kept, codes = self.kept, self.kept.codes
        columns: dict[str, Any] = {
            **{f"key{i}": each for i, each in enumerate(self._keys.decode(codes))},
            LISTS: lists_of(kept.lengths),
            HASH: pa.array(self._keys.hashes()[codes]),
            TIMERS[0]: pa.array(self._over(kept)),
            TIMERS[1]: pa.array(np.full(len(codes), LONG_MAX)),
        }
        columns[PARTIALS] = _lists(kept.counts, kept.partials)
        columns[COMPLETE] = _lists(kept.waits, kept.waiting)
        rows = kept.rows if len(kept.rows) else None
        self._table.save(Entries(pa.table(columns), rows))
        numbers = (self.watermark, self.waiting.next_number)
        self._log.set_numbers(_OWNER, dict(zip(_NUMBERS, numbers, strict=True)))

    def _over(self, kept: Kept) -> Ints:
        """Return the watermark at which the first partial match of each key is over."""
        if self._within is None:
            return np.full(len(kept), LONG_MAX)
        rows = kept.first_rows
        times = np.append(kept.rows.column(self._time).to_numpy(), 0)  # there may be none
        has_row = rows < LONG_MAX
        places = np.where(has_row, offsets(kept.lengths)[:-1] + np.where(has_row, rows, 0), -1)
        return np.where(has_row, times[places] + self._within, LONG_MAX)

    @property
    def next_due(self) -> int:
        """The watermark at which rows are taken, or matches are over; or LONG_MAX."""
        over = self._table.next_timers()[0]
        return min(
            [*self.waiting.first_times, LONG_MAX if over is None else over], default=LONG_MAX
        )

    def sizes(self) -> dict[str, int]:
        """Return how many rows wait, how many keys there are and what they keep."""
        return {
            "rows": len(self.waiting) + self._table.elsewhere["rows"] + len(self.kept.rows),
            "keys": self._table.keys,
        }


def rows_schema(plan: MatchPlan) -> pa.Schema:
    """Return the schema of rows that are kept; the time is int64 ticks."""
    return plan.query.in_ticks((plan.query.time, *plan.match.columns))


def _lists(counts: Ints, matches: Ints) -> pa.LargeListArray:
    """Return the matches of each key as a list of numbers."""
    ends = offsets(counts * matches.shape[1])
    return pa.LargeListArray.from_arrays(pa.array(ends), pa.array(matches.ravel()))


def _matches(lists: pa.LargeListArray, width: int) -> tuple[Ints, Ints]:
    """Return how many matches each key has, and the matches."""
    numbers = to_lane(lists.flatten()).values
    return to_lane(lists.value_lengths()).values // width, numbers.reshape(-1, width)
