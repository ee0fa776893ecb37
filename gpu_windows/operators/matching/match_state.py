"""State of the automaton between calls, by key: rows, partial matches and pending ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.ranges import concat_fields, offsets, ranges
from gpu_windows.rules import LONG_MAX
from gpu_windows.rules.pattern_matching.layout import NO_ROW, Found, Settings

Ints = NDArray[np.int64]

#: Where a partial match has its state and its first row, and after these one end a variable; a
#: pending match begins with its first row.
_STATE, _START, _ENDS = 0, 1, 2


@dataclass(frozen=True)
class MatchState:
    """Match state of some keys.

    Parameters
    ----------
    codes : int64[k]
        The keys, each once.
    rows : pyarrow.Table
        Their stored rows, key by key, in order.
    lengths : int64[k]
        Number of rows of each key.
    counts : int64[k]
        Number of partial matches of each key.
    partials : int64[p, width]
        Partial matches: state, first row, ends, and of each aggregate its integer, the bits of its
        float and its number of values. Rows are numbered from the first stored one of a key.
    pending_counts : int64[k]
        Number of complete matches of each key that are pending, because partial ones come first.
    pending : int64[w, width]
        Pending matches: first row, ends.
    """

    codes: Ints
    rows: pa.Table
    lengths: Ints
    counts: Ints
    partials: Ints
    pending_counts: Ints
    pending: Ints

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def nothing(cls, schema: pa.Schema, settings: Settings) -> MatchState:
        """Return the state of no keys; ``schema``: of the rows."""
        none = np.empty(0, np.int64)
        partials, pending = (none.reshape(0, width) for width in widths(settings))
        return cls(none, schema.empty_table(), none, none, partials, none, pending)

    @classmethod
    def concat(cls, parts: Sequence[MatchState]) -> MatchState:
        """Concatenate the state of different keys."""
        rows = pa.concat_tables([part.rows for part in parts], promote_options="default")
        names = ("lengths", "counts", "partials", "pending_counts", "pending")
        (codes,) = concat_fields(parts, "codes")
        return cls(codes, rows.combine_chunks(), *concat_fields(parts, *names))

    def split(self, some: NDArray[np.bool_]) -> tuple[MatchState, MatchState]:
        """Split into the state of some of the keys, and of the others."""
        if some.all() or not some.any():
            none = self._select(np.zeros(len(self), np.bool_))
            return (self, none) if some.all() else (none, self)
        return self._select(some), self._select(~some)

    def _select(self, selected: NDArray[np.bool_]) -> MatchState:
        places = np.flatnonzero(selected)
        rows = ranges(offsets(self.lengths)[:-1][places], self.lengths[places])
        return MatchState(
            self.codes[places],
            self.rows.take(pa.array(rows)),
            self.lengths[places],
            self.counts[places],
            _reorder_matches(self.partials, self.counts, places),
            self.pending_counts[places],
            _reorder_matches(self.pending, self.pending_counts, places),
        )

    def expand_to(self, keys: Ints, nothing: Found, settings: Settings) -> Found:
        """Return the state as input of an automaton that runs more keys.

        Parameters
        ----------
        keys : int64[k]
            Index, among the keys of the run, of each key; in any order.
        nothing : Found
            Empty state of all keys of the run.
        settings : Settings
        """
        order, of_keys = np.argsort(keys, kind="stable"), len(nothing.partials) - 1
        partials = _reorder_matches(self.partials, self.counts, order)
        pending = _reorder_matches(self.pending, self.pending_counts, order)
        ends, sums = _ENDS + settings.variables, settings.aggregates
        ints, floats, counts = (
            np.ascontiguousarray(partials[:, ends + i * sums : ends + (i + 1) * sums]).ravel()
            for i in range(3)
        )
        return nothing._replace(
            partials=_offsets_of(keys, self.counts, of_keys),
            state=np.ascontiguousarray(partials[:, _STATE]),
            starts=np.ascontiguousarray(partials[:, _START]),
            partial_ends=np.ascontiguousarray(partials[:, _ENDS:ends]).ravel(),
            ints=ints,
            floats=floats.view(np.float64),
            counts=counts,
            complete=_offsets_of(keys, self.pending_counts, of_keys),
            complete_starts=np.ascontiguousarray(pending[:, 0]),
            complete_ends=np.ascontiguousarray(pending[:, 1:]).ravel(),
        )

    @property
    def first_rows(self) -> Ints:
        """The first row of the partial matches of each key; LONG_MAX if none has one."""
        return _find_first(self.partials[:, _START], self.counts)


def widths(settings: Settings) -> tuple[int, int]:
    """Return how many numbers a partial match has, and a pending one."""
    return 2 + settings.variables + 3 * settings.aggregates, 1 + settings.variables


def read_remaining(
    found: Found, codes: Ints, rows: Ints, settings: Settings
) -> tuple[MatchState, Ints]:
    """Return the state of keys after a run, without rows, and the number of rows that expire.

    Parameters
    ----------
    found : Found
    codes, rows : int64[k]
        The keys of the run, and the number of rows of each.
    settings : Settings

    Returns
    -------
    Kept
        State of the keys that still have matches.
    int64[k']
        Number of rows of each of these keys that expire.
    """
    counts, pending_counts = np.diff(found.partials), np.diff(found.complete)
    some = np.flatnonzero((counts > 0) | (pending_counts > 0))
    expired = np.minimum(
        _find_first(found.starts, counts), _find_first(found.complete_starts, pending_counts)
    )
    expired = np.minimum(expired, rows)
    sums, ends = settings.aggregates, settings.variables
    shape = (len(found.state), sums)
    has_row = (found.starts != NO_ROW)[:, None]
    begin = np.where(has_row, np.repeat(expired, counts)[:, None], 0)
    partials = np.column_stack(
        [
            found.state,
            found.starts[:, None] - begin,
            found.partial_ends.reshape(-1, ends) - begin,
            found.ints.reshape(shape),
            found.floats.view(np.int64).reshape(shape),
            found.counts.reshape(shape),
        ]
    )
    first = np.repeat(expired, pending_counts)[:, None]
    pending = np.column_stack(
        [found.complete_starts[:, None] - first, found.complete_ends.reshape(-1, ends) - first]
    )
    lengths = (rows - expired)[some]
    state = MatchState(
        codes[some], pa.table({}), lengths, counts[some], partials, pending_counts[some], pending
    )
    return state, expired[some]


def _reorder_matches(matches: Ints, counts: Ints, order: Ints) -> Ints:
    """Return the matches of keys in another order of these."""
    reordered: Ints = matches[ranges(offsets(counts)[:-1][order], counts[order])]
    return reordered


def _offsets_of(keys: Ints, counts: Ints, of_keys: int) -> Ints:
    """Return where the matches of each key of a run begin, and where the last ones end."""
    of_key = np.zeros(of_keys, np.int64)
    of_key[keys] = counts
    return offsets(of_key)


def _find_first(starts: Ints, counts: Ints) -> Ints:
    """Return the first row of the matches of each key; LONG_MAX if none has one."""
    first = np.full(len(counts), LONG_MAX)
    some = np.flatnonzero(counts)
    if len(some):
        of_rows = np.where(starts == NO_ROW, LONG_MAX, starts)
        first[some] = np.minimum.reduceat(of_rows, offsets(counts[some])[:-1])
    return first
