"""Chunk size and condition of the pairs of window and interval joins."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_windows.column_types.time_units import to_microseconds
from gpu_windows.errors import ExpressionError

#: Maximum number of pairs in a chunk.
PAIRS = 1 << 20


def holds(condition: pc.Expression | None, pairs: pa.Table) -> NDArray[np.int64] | None:
    """Return the indices of the pairs for which a condition is true; None for all.

    Raises
    ------
    ExpressionError
        If it has no value for a pair.
    PrecisionError
        If it is of a text, and compares times or durations finer than a microsecond.
    """
    if condition is None:
        return None
    number_rows = pairs.append_column("__place", pa.array(np.arange(len(pairs))))
    try:
        places: NDArray[np.int64] = number_rows.filter(condition)["__place"].to_numpy()
    except pa.ArrowInvalid as error:
        if "would lose data" in str(error):
            _check_precision(pairs)
        raise ExpressionError("a condition has a value for each pair", value=str(error)) from error
    return np.sort(places)  # a filter keeps the order, but does not promise it


def _check_precision(pairs: pa.Table) -> None:
    for name in pairs.column_names:
        to_microseconds(pairs.column(name), name, "a time or duration in a condition")
