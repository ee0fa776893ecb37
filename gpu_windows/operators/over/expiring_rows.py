"""Rows of keys in a store that expire at a watermark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.keys import KeyEncoder, mask_of
from gpu_windows.operators.state.buffer_spec import BufferSpec, hash_prefixes
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.row_buffer import RowBuffer
from gpu_windows.operators.state.schemas import NOTHING
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]

#: Column of the watermark at which a row expires.
UNTIL = "__until"


class ExpiringRows:
    """Rows by key and by the watermark at which they expire.

    Parameters
    ----------
    log : StateLog
    name : str
        Their table name in the log.
    names : sequence of str
        The key columns.
    keys : KeyEncoder
    lacking : pyarrow.Schema
        See `RowBuffer`.
    """

    def __init__(
        self,
        log: StateLog,
        name: str,
        names: Sequence[str],
        keys: KeyEncoder,
        lacking: pa.Schema = NOTHING,
    ) -> None:
        self._names, self._keys = names, keys
        self.buffer = RowBuffer(
            log, name, BufferSpec(UNTIL, self._prefixes_of, adapts=True), lacking
        )

    def find(self, codes: Ints, after: int) -> tuple[pa.Table, Ints] | None:
        """Return the rows of some keys that expire after a watermark, and their keys.

        Parameters
        ----------
        codes : int64[k]
            Key codes, each once.
        after : int

        Returns
        -------
        (pyarrow.Table, int64[n]) or None
            None if there are none.
        """
        if len(codes) == 0 or after == LONG_MAX:
            return None
        prefixes = hash_prefixes(self._keys.hashes()[codes])
        ends = (np.full(len(codes), end) for end in (after + 1, LONG_MAX))
        found = self.buffer.find(prefixes, *ends)
        if found is None:
            return None
        of_rows = codes_of(self._keys, self._names, found)
        wanted = mask_of(codes, self._keys.count)[of_rows]
        wanted &= found.column(UNTIL).to_numpy() > after
        return (found.filter(pa.array(wanted)), of_rows[wanted]) if wanted.any() else None

    def _prefixes_of(self, rows: pa.Table) -> Ints:
        codes = codes_of(self._keys, self._names, rows)
        return hash_prefixes(self._keys.hashes())[codes]


def codes_of(keys: KeyEncoder, names: Iterable[str], rows: pa.Table) -> Ints:
    """Return the code of the key of each row."""
    return keys.encode([rows.column(name) for name in names])
