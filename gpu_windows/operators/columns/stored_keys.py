"""Keys in entries of a log: columns ``key0`` and so on, by which `KeyEncoder` knows them again."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from gpu_windows.operators.columns.keys import Codes, KeyEncoder
from gpu_windows.operators.state.keyed_table import HASH, TIMERS
from gpu_windows.rules import LONG_MAX

_KEY = re.compile(r"key\d+")


def columns_of_keys(keys: KeyEncoder, codes: Codes) -> dict[str, pa.Array]:
    """Return the columns that entries of keys need: the keys, their hashes, no timers.

    Parameters
    ----------
    keys : KeyEncoder
    codes : int64[k]
    """
    return {
        **{f"key{number}": column for number, column in enumerate(keys.decode(codes))},
        HASH: pa.array(keys.hashes()[codes]),
        **dict.fromkeys(TIMERS, pa.array(np.full(len(codes), LONG_MAX))),
    }


def codes_of_entries(keys: KeyEncoder, table: pa.Table) -> Codes:
    """Return the code of the key of each entry."""
    names = [name for name in table.column_names if _KEY.fullmatch(name)]
    return keys.encode([table.column(name) for name in names])
