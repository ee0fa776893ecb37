"""State of keys as a table: one row of the declared columns for each key that has state."""

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
        self._where = np.empty(0, np.int64)  # the row of each code, or -1

    def __len__(self) -> int:
        return int(np.count_nonzero(self._where >= 0))

    @property
    def codes(self) -> Ints:
        """The codes of keys that have state."""
        return np.flatnonzero(self._where >= 0)

    def of(self, codes: Ints) -> pa.Table:
        """Return a row for each of some keys: nulls if it has no state."""
        self._grow(codes)
        where = self._where[codes]
        return self._rows.take(pa.array(where, mask=where < 0))

    def put(self, codes: Ints, rows: pa.Table) -> None:
        """Replace the state of some keys; a row of nulls removes it."""
        self._grow(codes)
        has_values = _have_values(rows)
        self._where[codes] = -1
        others = self.codes
        if len(self._rows) > 2 * len(others):  # drop replaced rows
            self._rows = self._rows.take(pa.array(self._where[others]))
            self._where[others] = np.arange(len(others))
        base = len(self._rows)
        self._rows = pa.concat_tables([self._rows, rows.filter(has_values)]).combine_chunks()
        with_values = codes[has_values.to_numpy(zero_copy_only=False)]
        self._where[with_values] = np.arange(base, base + len(with_values))

    def _grow(self, codes: Ints) -> None:
        """Extend the array of rows to some codes."""
        more = int(codes.max(initial=-1)) + 1 - len(self._where)
        if more > 0:
            self._where = np.concatenate([self._where, np.full(more, -1)])


def _have_values(rows: pa.Table) -> pa.Array:
    """Return which rows have a value that is not null."""
    valid = (pc.is_valid(column) for column in rows.columns)
    return reduce(pc.or_, valid).combine_chunks()
