"""How the rows of a side are arranged: by key and time, and where a key is in a store."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.two_inputs import TIME
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.lanes import to_lane
from gpu_windows.operators.joins.matching import Matching
from gpu_windows.operators.joins.rows import Flags, JoinRows
from gpu_windows.operators.state.row_kind import places_of

Ints = NDArray[np.int64]

#: Codes of keys with a null, which match nothing: of left rows, of right rows. The codes of others
#: come after them.
NULLS = (0, 1)


class Arrangement:
    """Sorts the rows of a side.

    Parameters
    ----------
    keys : tuple of str
        The key columns.
    encoder : KeyEncoder
        Of both sides.
    matching : Matching
    null : int, optional
        The code of keys with a null: one of `NULLS`; None where they are keys like others.
    lacking : pyarrow.Schema
        Columns that rows of earlier starts may lack in a store.

    Attributes
    ----------
    keys : tuple of str
    lacking : pyarrow.Schema
    """

    def __init__(
        self,
        keys: tuple[str, ...],
        encoder: KeyEncoder,
        matching: Matching,
        null: int | None,
        lacking: pa.Schema,
    ) -> None:
        self.keys, self.lacking = keys, lacking
        self._encoder, self._matching, self._null = encoder, matching, null

    def rows(
        self, table: pa.Table, met: Flags, *, arrival: Ints | None = None, among: Ints | None = None
    ) -> JoinRows:
        """Return rows sorted by key and time, equal ones in their order.

        Parameters
        ----------
        table : pyarrow.Table
        met : bool[n]
            Whether they have had a partner.
        arrival : int64[n], optional
            Their places in the call that brought them; default: none did.
        among : int64[k], optional
            Codes of keys that were encoded before: only their rows are wanted.
        """
        codes = self._codes(table)
        if arrival is None:
            arrival = np.full(len(table), -1)
        rows = JoinRows(
            table.combine_chunks(), codes, to_lane(table.column(TIME)).values, arrival, met
        )
        if among is not None:
            is_wanted = np.zeros(self._encoder.count + len(NULLS), np.bool_)
            is_wanted[among] = True
            some = np.flatnonzero(is_wanted[codes])
            rows = rows if len(some) == len(rows) else rows.take(some)
        order = self._matching.order(rows.codes, rows.ts)
        return rows if order is None else rows.take(order)

    def places(self, table: pa.Table) -> Ints:
        """Return where the keys of rows are in a store: int64[n], from 0 on."""
        return self.places_of(self._codes(table))

    def places_of(self, codes: Ints) -> Ints:
        """Return where keys are in a store, given by their codes; those with a null are at 0."""
        of_keys = places_of(self._encoder.hashes())
        places: Ints = np.concatenate([np.zeros(len(NULLS), np.int64), of_keys])
        return places[codes]

    def hashes_of(self, codes: Ints) -> Ints:
        """Return the hashes of keys, given by their codes; none of them is one with a null."""
        hashes: Ints = self._encoder.hashes()[codes - len(NULLS)]
        return hashes

    def _codes(self, table: pa.Table) -> Ints:
        columns = [table.column(name) for name in self.keys]
        codes = self._matching.codes(self._encoder, columns) + len(NULLS)
        for column in columns:
            if column.null_count and self._null is not None:
                codes[column.is_null().to_numpy()] = self._null
        return codes


def are_keys(codes: Ints) -> Flags:
    """Return which codes are of keys without a null."""
    found: Flags = codes >= len(NULLS)
    return found
