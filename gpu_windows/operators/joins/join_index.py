"""Index of a join side: codes of the keys of rows, and prefixes of keys in a store."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.two_inputs import TIME
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.numeric import to_numeric
from gpu_windows.operators.device import encode_keys
from gpu_windows.operators.joins.matching import Matching
from gpu_windows.operators.joins.rows import Flags, JoinRows
from gpu_windows.operators.state.buffer_spec import hash_prefixes

Ints = NDArray[np.int64]

#: Codes of keys with a null, which match nothing: of left rows, of right rows. Those of others are
#: not negative. As indices they are the last two.
NULLS = (-1, -2)


class JoinIndex:
    """Encodes and hashes the keys of the rows of a side.

    Parameters
    ----------
    keys : tuple of str
        The key columns.
    encoder : KeyEncoder
        Encoder of the keys of both sides.
    matching : Matching
    null : int, optional
        The code of keys with a null: one of `NULLS`; None if they are like other keys.
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

    def make_rows(
        self,
        table: pa.Table,
        matched: Flags,
        *,
        arrival: Ints | None = None,
        among: Ints | None = None,
    ) -> JoinRows:
        """Return the rows of a table, with the codes of their keys; see `JoinRows.arrange`.

        Parameters
        ----------
        table : pyarrow.Table
        matched : bool[n]
            Whether they have been matched.
        arrival : int64[n], optional
            Their indices in the current call; default: -1, for rows of earlier calls.
        among : int64[k], optional
            Codes of known keys: only their rows are returned.
        """
        codes = self._codes(table)
        if arrival is None:
            arrival = np.full(len(table), -1)
        table = table.combine_chunks()
        ts = to_numeric(table.column(TIME)).values
        rows = JoinRows(table, codes, ts, arrival, matched, self._matching.sort_rows)
        if among is not None:
            is_among = np.zeros(self._encoder.count + len(NULLS), np.bool_)
            is_among[among] = True
            some = np.flatnonzero(is_among[np.asarray(codes)])
            rows = rows if len(some) == len(rows) else rows.take(some)
        return rows.arrange()

    def prefixes_of_rows(self, table: pa.Table) -> Ints:
        """Return the hash prefixes of the keys of rows: int64[n]."""
        return self.hash_prefixes(self._codes(table))

    def hash_prefixes(self, codes: Ints) -> Ints:
        """Return the hash prefixes of keys, given by their codes; 0 for keys with a null."""
        prefixes_of_keys = hash_prefixes(self._encoder.hashes())
        prefixes: Ints = np.concatenate([prefixes_of_keys, np.zeros(len(NULLS), np.int64)])
        return prefixes[np.asarray(codes)]

    def hashes_of(self, codes: Ints) -> Ints:
        """Return the hashes of keys, given by their codes; none of them is one with a null."""
        hashes: Ints = self._encoder.hashes()[codes]
        return hashes

    def _codes(self, table: pa.Table) -> Ints:
        columns = [table.column(name) for name in self.keys]
        codes = encode_keys(self._matching.kernels, self._encoder, columns)
        nulls = [column.is_null().to_numpy() for column in columns if column.null_count]
        if not nulls or self._null is None:
            return codes
        return np.where(np.logical_or.reduce(nulls), self._null, codes)


def are_keys(codes: Ints) -> Flags:
    """Return which codes are of keys without a null."""
    found: Flags = codes >= 0
    return found
