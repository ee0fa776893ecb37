"""User-defined aggregates: an accumulator in Python, declared with its Arrow type."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpu_windows.errors import QueryError
from gpu_windows.vocabulary.triggers.base import Row

if TYPE_CHECKING:
    from gpu_windows.annotations import Column


class AggregateFunction(ABC):
    """An aggregate of your own (Flink: AggregateFunction); row at a time, in Python.

    Used as ``.aggregate(name=gw.user_aggregate(MyFunction(), "column", ...))``.
    """

    #: Arrow type of the accumulator, which is the state of a window.
    accumulator: pa.DataType
    #: Arrow type of the result.
    result: pa.DataType

    @abstractmethod
    def create_accumulator(self) -> Any:
        """Return an empty accumulator."""

    @abstractmethod
    def add(self, row: Row, accumulator: Any) -> Any:
        """Return the accumulator with a row added, in order of arrival."""

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """Return the result; more rows may come after it."""

    def merge(self, left: Any, right: Any) -> Any:
        """Merge two accumulators; needed for sessions only."""
        rule = f"{type(self).__name__} needs merge() for windows that merge"
        raise NotImplementedError(rule)


@dataclass(frozen=True)
class UserAggregate:
    """An `AggregateFunction` of a query, with the columns that it reads."""

    function: AggregateFunction
    columns: tuple[str | Column, ...]

    def filter(self, condition: str | Column) -> UserAggregate:
        """Raise `QueryError`: ``add`` decides which rows count."""
        rule = "an aggregate of your own decides in add() which rows count: give it the column"
        raise QueryError(rule, value=condition)


def user_aggregate(function: AggregateFunction, *columns: str | Column) -> UserAggregate:
    """Use an aggregate of your own: row at a time, in Python; its ``add`` sees ``columns``."""
    return UserAggregate(function, columns)


@dataclass(frozen=True)
class BoundUserAggregate:
    """A user's aggregate with its name in the result."""

    name: str
    function: AggregateFunction
    columns: tuple[str, ...]

    @property
    def result_type(self) -> pa.DataType:
        """Arrow type of the result column."""
        return self.function.result

    def describe(self) -> str:
        """Return the aggregate as SQL would write it."""
        return f"{type(self.function).__name__}({', '.join(self.columns)})"
