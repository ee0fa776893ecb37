"""Buffered rows and match state of keys in a store; the keys of a call are in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.numeric import one_chunk, to_numeric
from gpu_windows.operators.columns.ranges import offsets
from gpu_windows.operators.columns.stored_keys import codes_of_entries, columns_of_keys
from gpu_windows.operators.matching.match_state import MatchState, widths
from gpu_windows.operators.state.entries import LISTS, Entries, lists_of
from gpu_windows.operators.state.keyed_table import TIMERS, KeyedTable
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.pending_rows import PendingRows
from gpu_windows.planning.kinds.match import MatchPlan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.rules.pattern_matching.layout import Settings

Ints = NDArray[np.int64]

#: Table names of rows that are buffered until the watermark, and of keys with their rows.
BUFFERED, KEYS = "match buffered", "match keys"
#: Columns of partial matches and of pending complete ones, a list of numbers each.
PARTIALS, COMPLETE = "partials", "complete"
#: The owner of the saved numbers, and their names.
_OWNER, _NUMBERS = "match", ("watermark", "next row")


class StoredMatches:
    """State of a pattern query.

    Parameters
    ----------
    plan : MatchPlan
    settings : Settings
    keys : KeyEncoder
    log : StateLog
        Empty, or as `save` wrote it.

    Attributes
    ----------
    watermark : int
        The current watermark.
    buffered : PendingRows
    match_state : MatchState
        State of the keys in memory.
    """

    def __init__(
        self, plan: MatchPlan, settings: Settings, keys: KeyEncoder, log: StateLog
    ) -> None:
        self._settings, self._keys, self._log = settings, keys, log
        self._time, self._within = plan.query.time, plan.query.match.within
        self.watermark, number = log.numbers(_OWNER, _NUMBERS) or (LONG_MIN, 0)
        self.buffered = PendingRows(log, BUFFERED, time=self._time, next_number=number)
        self._table = KeyedTable(log, KEYS, lambda each: {"rows": each.row_count})
        self._nothing = self.match_state = MatchState.nothing(rows_schema(plan), settings)

    def load(self, codes: Ints, watermark: int) -> None:
        """Load some keys, ``codes`` has each once, and those with an expired partial match."""
        self._add_entries(self._table.load(self._keys.hashes()[codes]))
        if self._within is not None:
            self._add_entries(self._table.load_due(watermark))

    def _add_entries(self, found: Entries | None) -> None:
        if found is None:
            return
        table = found.table
        codes, all_rows = codes_of_entries(self._keys, table), found.listed_rows
        rows = self._nothing.rows if all_rows is None else all_rows
        of_matches = (one_chunk(table.column(name)) for name in (PARTIALS, COMPLETE))
        (counts, partials), (pending_counts, pending) = map(
            _matches, of_matches, widths(self._settings)
        )
        more = MatchState(
            codes, rows, found.list_lengths, counts, partials, pending_counts, pending
        )
        self.match_state = MatchState.concat([self.match_state, more])

    def are_due(self, touched: Ints, watermark: int) -> NDArray[np.bool_]:
        """Return which keys in memory are touched, or have an expired partial match."""
        selected = np.isin(self.match_state.codes, touched)
        return (
            selected | (self._expiry_of(self.match_state) <= watermark)
            if self._within is not None
            else selected
        )

    def clear(self) -> None:
        """Delete everything, because no further rows arrive."""
        self._table.clear()
        self.match_state = self._nothing

    def save(self) -> None:
        """Write the new rows, and the keys in memory."""
        match_state, codes = self.match_state, self.match_state.codes
        columns: dict[str, Any] = {
            **columns_of_keys(self._keys, codes),
            LISTS: lists_of(match_state.lengths),
            TIMERS[0]: pa.array(self._expiry_of(match_state)),
        }
        columns[PARTIALS] = _lists(match_state.counts, match_state.partials)
        columns[COMPLETE] = _lists(match_state.pending_counts, match_state.pending)
        rows = match_state.rows if len(match_state.rows) else None
        self._table.save(Entries(pa.table(columns), rows))
        numbers = (self.watermark, self.buffered.next_number)
        self._log.set_numbers(_OWNER, dict(zip(_NUMBERS, numbers, strict=True)))

    def _expiry_of(self, match_state: MatchState) -> Ints:
        """Return the watermark at which the first partial match of each key expires."""
        if self._within is None:
            return np.full(len(match_state), LONG_MAX)
        rows = match_state.first_rows
        times = np.append(match_state.rows.column(self._time).to_numpy(), 0)  # there may be none
        has_row = rows < LONG_MAX
        places = np.where(
            has_row, offsets(match_state.lengths)[:-1] + np.where(has_row, rows, 0), -1
        )
        return np.where(has_row, times[places] + self._within, LONG_MAX)

    @property
    def next_due(self) -> int:
        """The next watermark that processes rows or expires matches, or LONG_MAX."""
        expired = self._table.next_timers()[0]
        return min(
            [*self.buffered.first_times, LONG_MAX if expired is None else expired], default=LONG_MAX
        )

    def sizes(self) -> dict[str, int]:
        """Return the number of rows, buffered or stored with keys, and of keys."""
        return {
            "rows": len(self.buffered)
            + self._table.not_loaded["rows"]
            + len(self.match_state.rows),
            "keys": self._table.keys,
        }


def rows_schema(plan: MatchPlan) -> pa.Schema:
    """Return the schema of stored rows; the time is int64 ticks."""
    return plan.query.in_ticks((plan.query.time, *plan.query.match.columns))


def _lists(counts: Ints, matches: Ints) -> pa.LargeListArray:
    """Return the matches of each key as a list of numbers."""
    ends = offsets(counts * matches.shape[1])
    return pa.LargeListArray.from_arrays(pa.array(ends), pa.array(matches.ravel()))


def _matches(lists: pa.LargeListArray, width: int) -> tuple[Ints, Ints]:
    """Return the number of matches of each key, and the matches."""
    numbers = to_numeric(lists.flatten()).values
    return to_numeric(lists.value_lengths()).values // width, numbers.reshape(-1, width)
