"""Who evaluates the functions that take the rows of many windows at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

from gpu_windows.functions.join import WindowJoin
from gpu_windows.functions.top import Top
from gpu_windows.functions.vector_results import Piece
from gpu_windows.functions.vector_window import WindowBatch
from gpu_windows.functions.vectorised import BatchFunction, Vectorised
from gpu_windows.operators.columns.top import topmost
from gpu_windows.operators.joins.window import join_windows

#: Yields the results of windows piece by piece; `InvalidFunctionError` if they are not as declared.
Evaluator: TypeAlias = Callable[[WindowBatch], Iterator[Piece]]


def evaluator_of(function: BatchFunction) -> Evaluator:
    """Return what evaluates a function, of which somebody knows how: else it is a KeyError."""
    return partial(_EVALUATE[type(function)], function)


def _vectorised(function: Vectorised, batch: WindowBatch) -> Iterator[Piece]:
    yield function.call(batch)


_EVALUATE: Mapping[type[BatchFunction], Callable[[Any, WindowBatch], Iterator[Piece]]] = {
    Vectorised: _vectorised,
    WindowJoin: join_windows,
    Top: topmost,
}
