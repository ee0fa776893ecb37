"""What the automaton keeps of keys between calls: rows, partial matches, and those that wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.ranges import offsets, ranges
from gpu_windows.rules import LONG_MAX
from gpu_windows.rules.pattern_matching.layout import NO_ROW, Found, Settings

Ints = NDArray[np.int64]

#: Where a partial match has its state and its first row, and after these one end a variable; a
#: match that waits begins with its first row.
_STATE, _START, _ENDS = 0, 1, 2


@dataclass(frozen=True)
class Kept:
    """What is kept of some keys.

    Parameters
    ----------
    codes : int64[k]
        The keys, each once.
    rows : pyarrow.Table
        Their rows, those of a key together, in order.
    lengths : int64[k]
        How many rows each has.
    counts : int64[k]
        How many partial matches each has.
    partials : int64[p, width]
        Partial matches: state, first row, ends, and of each aggregate its integer, the bits of its
        float and how many values it has. Rows are counted from the first one that is kept of a key.
    waits : int64[k]
        How many complete matches of each wait for partial ones.
    waiting : int64[w, width]
        These: first row, ends.
    """

    codes: Ints
    rows: pa.Table
    lengths: Ints
    counts: Ints
    partials: Ints
    waits: Ints
    waiting: Ints

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def nothing(cls, schema: pa.Schema, settings: Settings) -> Kept:
        """Return what is kept of no key; ``schema``: of the rows."""
        none = np.empty(0, np.int64)
        partials, waiting = (none.reshape(0, width) for width in widths(settings))
        return cls(none, schema.empty_table(), none, none, partials, none, waiting)

    @classmethod
    def together(cls, parts: Sequence[Kept]) -> Kept:
        """Put keys one after the other, which are different ones."""
        rows = pa.concat_tables([part.rows for part in parts], promote_options="default")
        codes, lengths, counts, partials, waits, waiting = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("codes", "lengths", "counts", "partials", "waits", "waiting")
        )
        return cls(codes, rows.combine_chunks(), lengths, counts, partials, waits, waiting)

    def parted(self, some: NDArray[np.bool_]) -> tuple[Kept, Kept]:
        """Return what is kept of some of the keys, and of the others."""
        if some.all() or not some.any():
            none = self._some(np.zeros(len(self), np.bool_))
            return (self, none) if some.all() else (none, self)
        return self._some(some), self._some(~some)

    def _some(self, mine: NDArray[np.bool_]) -> Kept:
        places = np.flatnonzero(mine)
        rows = ranges(offsets(self.lengths)[:-1][places], self.lengths[places])
        return Kept(
            self.codes[places],
            self.rows.take(pa.array(rows)),
            self.lengths[places],
            self.counts[places],
            _of(self.partials, self.counts, places),
            self.waits[places],
            _of(self.waiting, self.waits, places),
        )

    def among(self, keys: Ints, nothing: Found, settings: Settings) -> Found:
        """Return what is kept, for an automaton that runs more keys.

        Parameters
        ----------
        keys : int64[k]
            Which of the keys of the run each of these is; they may come in any order.
        nothing : Found
            Of all keys of the run.
        settings : Settings
        """
        order, of_keys = np.argsort(keys, kind="stable"), len(nothing.partials) - 1
        partials = _of(self.partials, self.counts, order)
        waiting = _of(self.waiting, self.waits, order)
        ends, sums = _ENDS + settings.variables, settings.aggregates
        ints, floats, counts = (
            np.ascontiguousarray(partials[:, ends + i * sums : ends + (i + 1) * sums]).ravel()
            for i in range(3)
        )
        return nothing._replace(
            partials=_begins(keys, self.counts, of_keys),
            state=np.ascontiguousarray(partials[:, _STATE]),
            starts=np.ascontiguousarray(partials[:, _START]),
            kept_ends=np.ascontiguousarray(partials[:, _ENDS:ends]).ravel(),
            ints=ints,
            floats=floats.view(np.float64),
            counts=counts,
            waiting=_begins(keys, self.waits, of_keys),
            waiting_starts=np.ascontiguousarray(waiting[:, 0]),
            waiting_ends=np.ascontiguousarray(waiting[:, 1:]).ravel(),
        )

    @property
    def first_rows(self) -> Ints:
        """The first row of the partial matches of each key; LONG_MAX if none has one."""
        return _least(self.partials[:, _START], self.counts)


def widths(settings: Settings) -> tuple[int, int]:
    """Return how many numbers a partial match is, and one that waits."""
    return 2 + settings.variables + 3 * settings.aggregates, 1 + settings.variables


def left_by(found: Found, codes: Ints, rows: Ints, settings: Settings) -> tuple[Kept, Ints]:
    """Return what a run has left of keys, without their rows, and how many of these are over.

    Parameters
    ----------
    found : Found
    codes, rows : int64[k]
        The keys of the run; how many rows each has.
    settings : Settings

    Returns
    -------
    Kept
        Of the keys of which something is kept.
    int64[k']
        Rows of each of them that are over.
    """
    counts, waits = np.diff(found.partials), np.diff(found.waiting)
    some = np.flatnonzero((counts > 0) | (waits > 0))
    over = np.minimum(_least(found.starts, counts), _least(found.waiting_starts, waits))
    over = np.minimum(over, rows)
    sums, ends = settings.aggregates, settings.variables
    shape = (len(found.state), sums)
    has_row = (found.starts != NO_ROW)[:, None]
    begin = np.where(has_row, np.repeat(over, counts)[:, None], 0)
    partials = np.column_stack(
        [
            found.state,
            found.starts[:, None] - begin,
            found.kept_ends.reshape(-1, ends) - begin,
            found.ints.reshape(shape),
            found.floats.view(np.int64).reshape(shape),
            found.counts.reshape(shape),
        ]
    )
    first = np.repeat(over, waits)[:, None]
    waiting = np.column_stack(
        [found.waiting_starts[:, None] - first, found.waiting_ends.reshape(-1, ends) - first]
    )
    lengths = (rows - over)[some]
    kept = Kept(codes[some], pa.table({}), lengths, counts[some], partials, waits[some], waiting)
    return kept, over[some]


def _of(matches: Ints, counts: Ints, order: Ints) -> Ints:
    """Return the matches of keys in another order of these."""
    taken: Ints = matches[ranges(offsets(counts)[:-1][order], counts[order])]
    return taken


def _begins(keys: Ints, counts: Ints, of_keys: int) -> Ints:
    """Return where the matches of each key of a run begin, and where the last ones end."""
    of_key = np.zeros(of_keys, np.int64)
    of_key[keys] = counts
    return offsets(of_key)


def _least(starts: Ints, counts: Ints) -> Ints:
    """Return the first row of the matches of each key; LONG_MAX if none has one."""
    first = np.full(len(counts), LONG_MAX)
    some = np.flatnonzero(counts)
    if len(some):
        of_rows = np.where(starts == NO_ROW, LONG_MAX, starts)
        first[some] = np.minimum.reduceat(of_rows, offsets(counts[some])[:-1])
    return first
