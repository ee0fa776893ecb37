"""User-defined aggregates: an accumulator in Python, declared with its Arrow type."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpu_windows.errors import InvalidFunctionError, QueryError
from gpu_windows.vocabulary.triggers.base import Row

if TYPE_CHECKING:
    from gpu_windows.annotations import Column


class AggregateFunction(ABC):
    """An aggregate of your own (Flink: AggregateFunction); row at a time, in Python.

    Used as ``.aggregate(name=gw.user_aggregate(MyFunction(), "column", ...))``.

    Examples
    --------
    >>> class Longest(gw.functions.AggregateFunction):
    ...     accumulator = result = pa.string()
    ...
    ...     def create_accumulator(self):
    ...         return ""
    ...
    ...     def add(self, row, accumulator):
    ...         return max(accumulator, row["page"], key=len)
    ...
    ...     def get_result(self, accumulator):
    ...         return accumulator
    >>> clicks = gw.stream(pa.table({"user": ["ann", "ann"], "page": ["home", "basket"]}))
    >>> longest = gw.user_aggregate(Longest(), "page")
    >>> clicks.key_by("user").count_window(2).aggregate(page=longest)["page"].to_pylist()
    ['basket']
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
    """An `AggregateFunction` of a query, with the columns that it reads.

    Parameters
    ----------
    function : AggregateFunction
    columns : tuple of str or Column
        What its ``add`` sees of a row.

    Examples
    --------
    >>> class Count(gw.functions.AggregateFunction):
    ...     accumulator = result = pa.int64()
    ...
    ...     def create_accumulator(self):
    ...         return 0
    ...
    ...     def add(self, row, accumulator):
    ...         return accumulator + 1
    ...
    ...     def get_result(self, accumulator):
    ...         return accumulator
    >>> aggregate = gw.user_aggregate(Count(), "page")
    >>> isinstance(aggregate, gw.typing.UserAggregate), aggregate.columns
    (True, ('page',))
    """

    function: AggregateFunction
    columns: tuple[str | Column, ...]

    def filter(self, condition: str | Column) -> UserAggregate:
        """Raise `QueryError`: ``add`` decides which rows count.

        Parameters
        ----------
        condition : str or Column
            Not supported here.

        Raises
        ------
        QueryError
            Always.
        """
        rule = "an aggregate of your own decides in add() which rows count: give it the column"
        raise QueryError(rule, value=condition)


def user_aggregate(function: AggregateFunction, *columns: str | Column) -> UserAggregate:
    """Use an aggregate of your own: row at a time, in Python; its ``add`` sees ``columns``.

    Parameters
    ----------
    function : AggregateFunction
    *columns : str or Column
        What its ``add`` sees of a row.

    Raises
    ------
    InvalidFunctionError
        If it is no `AggregateFunction`, or lacks the type of its accumulator or result.

    Examples
    --------
    >>> class Product(gw.functions.AggregateFunction):
    ...     accumulator = result = pa.float64()
    ...
    ...     def create_accumulator(self):
    ...         return 1.0
    ...
    ...     def add(self, row, accumulator):
    ...         return accumulator * row["factor"]
    ...
    ...     def get_result(self, accumulator):
    ...         return accumulator
    >>> rates = gw.stream(pa.table({"fund": ["x", "x"], "factor": [1.5, 2.0]})).key_by("fund")
    >>> product = gw.user_aggregate(Product(), "factor")
    >>> rates.count_window(2).aggregate(growth=product)["growth"].to_pylist()
    [3.0]
    """
    check_aggregate(function, "user_aggregate takes", "accumulator", "result")
    return UserAggregate(function, columns)


def check_aggregate(function: Any, subject: str, *types: str) -> None:
    """Raise `InvalidFunctionError` unless it is an `AggregateFunction` that declares Arrow types.

    ``subject``: the start of the rule, what takes it; ``types``: names of the attributes.
    """
    if not isinstance(function, AggregateFunction):
        made = f": write {function.__name__}()" if isinstance(function, type) else ""
        raise InvalidFunctionError(f"{subject} an AggregateFunction{made}", value=repr(function))
    for name in types:
        found = getattr(function, name, None)
        if not isinstance(found, pa.DataType):
            rule = f"{type(function).__name__}.{name} is an Arrow type, such as pa.int64()"
            raise InvalidFunctionError(rule, value="nothing" if found is None else repr(found))


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

    def result_field(self, schema: pa.Schema) -> pa.Field:
        """Return the field of the result column."""
        del schema
        return pa.field(self.name, self.result_type)

    def describe(self) -> str:
        """Return the aggregate as SQL would write it."""
        return f"{type(self.function).__name__}({', '.join(self.columns)})"
