"""Dictionary codes of the keys of rows, made on the device if kernels run there.

A key column is copied to the device and deduplicated there. The distinct values go to the host in
order of first appearance, and the host's dictionary gives them codes: so state, hashes and the
order of results equal the CPU's. This is one round trip per batch, of the size of its distinct
keys. It serves numbers, dates and timestamps, and strings and binary if pylibcudf is installed;
structs and wide decimals are encoded on the host. Slices, sessions and joins use the codes where
they are; frames and panes copy them to the host, where they arrange rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.device import Kernels


@dataclass(frozen=True)
class _KeyColumns:
    """The key columns of one call."""

    columns: tuple[pa.Array | pa.ChunkedArray, ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    def halves(self) -> tuple[Self, Self]:
        """Return the first and the second half."""
        middle = len(self) // 2
        first, second = (
            [each.slice(*part) for each in self.columns] for part in ((0, middle), (middle,))
        )
        return type(self)(tuple(first)), type(self)(tuple(second))


def encode_keys(
    kernels: Kernels, keys: KeyEncoder, columns: Sequence[pa.Array | pa.ChunkedArray]
) -> NDArray[np.int64]:
    """Return the code of every row as `KeyEncoder.encode` does; it stays on a device that made it.

    Parameters
    ----------
    kernels : Kernels
    keys : KeyEncoder
        It gives the same codes wherever they are made.
    columns : sequence of pyarrow.Array or pyarrow.ChunkedArray
        One per key column.
    """
    parts = kernels.prepare(
        _KeyColumns(tuple(columns)), lambda backend, piece: keys.encode(piece.columns, backend)
    )
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
