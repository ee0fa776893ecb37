"""What a run gives, in one form for equal things."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from gpu_windows.operators.base import Emission
from gpu_windows.operators.counters import Counters

#: A row as a value that can be counted.
Values = tuple[Any, ...]


@dataclass
class Given:
    """What came of the rows and times between two marks."""

    results: Counter[Values] = field(default_factory=Counter)
    late: Counter[Values] = field(default_factory=Counter)
    counters: Counters = field(default_factory=Counters)

    def add(self, emissions: Iterable[Emission]) -> None:
        """Take what an operator gives."""
        for emission in emissions:
            self.results.update(values_of(emission.results))
            for tag, side in emission.sides.items():
                self.results.update((tag, *row) for row in values_of(side))
            self.late.update(values_of(emission.late))
            self.counters += emission.counters

    def __iadd__(self, other: Given) -> Given:
        self.results.update(other.results)
        self.late.update(other.late)
        self.counters += other.counters
        return self


@dataclass(frozen=True)
class Outcome:
    """What a run gives.

    Parameters
    ----------
    segments : list of Given
        Mark by mark; the last is what the end of time gives.
    left : mapping of str to int
        What is held after the end of time.
    error : Exception, optional
        What ended it early.
    """

    segments: list[Given]
    left: Mapping[str, int]
    error: Exception | None = None


def values_of(table: pa.Table) -> Iterable[Values]:
    """Yield the rows of a table as values."""
    if len(table):
        columns = [map(_plain, column.to_pylist()) for column in table.columns]
        yield from zip(*columns, strict=True)


def _plain(value: Any) -> Any:
    """Return a value that is equal to those that mean the same, and has a hash."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, list):
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return tuple((name, _plain(each)) for name, each in value.items())
    return value
