"""State of keys as a table: a row of the declared columns for each that has something kept."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class StateRows:
    """Rows of state, by the codes of keys.

    Parameters
    ----------
    schema : pyarrow.Schema
        The declared columns.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._rows = schema.empty_table()
        self._where = np.empty(0, np.int64)  # the row of each code; -1: nothing is kept

    def __len__(self) -> int:
        return int(np.count_nonzero(self._where >= 0))

    @property
    def codes(self) -> Ints:
        """The keys of which something is kept."""
        return np.flatnonzero(self._where >= 0)

    def of(self, codes: Ints) -> pa.Table:
        """Return a row for each of some keys: null where nothing is kept."""
        self._know(codes)
        where = self._where[codes]
        return self._rows.take(pa.array(where, mask=where < 0))

    def put(self, codes: Ints, rows: pa.Table) -> None:
        """Keep rows for some keys instead of theirs; one of nulls keeps nothing."""
        self._know(codes)
        kept = _some(rows)
        self._where[codes] = -1
        others = self.codes
        if len(self._rows) > 2 * len(others):  # what nobody asks for any more
            self._rows = self._rows.take(pa.array(self._where[others]))
            self._where[others] = np.arange(len(others))
        base = len(self._rows)
        self._rows = pa.concat_tables([self._rows, rows.filter(kept)]).combine_chunks()
        keepers = codes[kept.to_numpy(zero_copy_only=False)]
        self._where[keepers] = np.arange(base, base + len(keepers))

    def _know(self, codes: Ints) -> None:
        """Have room for some codes."""
        more = int(codes.max(initial=-1)) + 1 - len(self._where)
        if more > 0:
            self._where = np.concatenate([self._where, np.full(more, -1)])


def _some(rows: pa.Table) -> pa.Array:
    """Tell of each row whether a column is not null."""
    valid = (pc.is_valid(column) for column in rows.columns)
    return reduce(pc.or_, valid).combine_chunks()
