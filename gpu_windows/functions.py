"""Window functions that are not aggregates: they see the rows of a window themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpu_windows.aggregates import BoundAggregate

#: A row of a window: column name to Python value.
Row = Mapping[str, object]


@dataclass(frozen=True)
class Aggregates:
    """Incremental aggregates: only accumulators are kept."""

    bound: tuple[BoundAggregate, ...]


@dataclass(frozen=True)
class Collect:
    """All rows of a window in order of arrival: one list per column."""

    columns: tuple[str, ...]


@dataclass(frozen=True)
class Reduce:
    """Two rows become one of the same columns (Flink: ReduceFunction); row at a time, in Python.

    ``function(earlier, later)`` takes and returns rows of exactly ``columns``.
    """

    function: Callable[[Row, Row], Row]
    columns: tuple[str, ...]


WindowFunction = Aggregates | Collect | Reduce
