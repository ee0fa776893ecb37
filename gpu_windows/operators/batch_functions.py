"""Evaluators of functions that take the rows of many windows in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

from gpu_windows.functions.join import WindowJoin
from gpu_windows.functions.top import Top
from gpu_windows.functions.vector_results import Piece
from gpu_windows.functions.vector_window import WindowBatch
from gpu_windows.functions.vectorised import BatchFunction, Vectorised
from gpu_windows.operators.columns.top_n import evaluate_top
from gpu_windows.operators.joins.window import join_windows

#: Yields results of windows in pieces; raises `InvalidFunctionError` if they are not as declared.
Evaluator: TypeAlias = Callable[[WindowBatch], Iterator[Piece]]


def evaluator_of(function: BatchFunction) -> Evaluator:
    """Return the evaluator of a function.

    Raises
    ------
    KeyError
        If its type has none.
    """
    return partial(_EVALUATE[type(function)], function)


def _call_vectorised(function: Vectorised, batch: WindowBatch) -> Iterator[Piece]:
    yield function.call(batch)


_EVALUATE: Mapping[type[BatchFunction], Callable[[Any, WindowBatch], Iterator[Piece]]] = {
    Vectorised: _call_vectorised,
    WindowJoin: join_windows,
    Top: evaluate_top,
}
