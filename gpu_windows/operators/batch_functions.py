"""Who evaluates the functions that take the rows of many windows at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.join import WindowJoin
from gpu_windows.functions.vectorised import BatchFunction, Vectorised, WindowBatch
from gpu_windows.operators.joins.window import joined

#: A part of the results, and the window of each: int64[n], ascending.
Piece = tuple[pa.Table, NDArray[np.int64]]


def results(function: BatchFunction, batch: WindowBatch) -> Iterator[Piece]:
    """Yield what a function makes of many windows, piece by piece.

    Raises
    ------
    InvalidFunctionError
        If the results of a user's function are not what was declared.
    """
    return _BY[type(function)](function, batch)


_BY: Mapping[type, Callable[[Any, WindowBatch], Iterator[Piece]]] = {
    Vectorised: Vectorised.call,
    WindowJoin: joined,
}
