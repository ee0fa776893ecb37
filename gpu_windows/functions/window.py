"""Window functions: their base, and those built in: aggregates, lists of values, reduction.

A function describes itself: its result columns, whether it keeps rows, why kernels cannot evaluate
it, and which of its parts depend on order. So no other module checks its class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import pyarrow as pa

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.aggregates.partials import Partial
from gpu_windows.aggregates.user import AggregateFunction, BoundUserAggregate
from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.join_function import PairProcess
from gpu_windows.vocabulary.rich_functions import RichFunction
from gpu_windows.vocabulary.triggers.base import Row


class WindowFunction(ABC):
    """A function of the rows of a window that fires; a frozen value.

    Attributes
    ----------
    columns : tuple of str
        Columns of the rows that it reads, each once.
    """

    columns: tuple[str, ...]
    #: Whether each window that fires has one result.
    has_one_result: ClassVar[bool] = False

    @property
    def read_columns(self) -> tuple[str, ...]:
        """Columns of the rows that are read for its results, each once."""
        return self.columns

    @property
    def compared_columns(self) -> tuple[str, ...]:
        """Columns whose values are compared, not only passed on."""
        return self.read_columns

    @abstractmethod
    def output_fields(self, schema: pa.Schema) -> tuple[pa.Field, ...]:
        """Return the result columns; ``schema``: of the input."""

    @property
    def keeps_rows(self) -> bool:
        """Whether it needs the rows of a window when it fires, not only partials."""
        return True

    @property
    def why_rows(self) -> str | None:
        """Reason why partial aggregates are not enough; None if they are."""
        return f"{self.kind} needs the rows, not partial aggregates"

    @property
    def result_time(self) -> str | None:
        """The result column with the last tick of the window, if one has it."""
        return None

    @property
    def built_in(self) -> tuple[BoundAggregate, ...]:
        """The aggregates of its results that kernels evaluate."""
        return ()

    @property
    def incremental_aggregates(self) -> tuple[BoundAggregate, ...]:
        """The built-in aggregates that rows are added to, for results or for a user's function."""
        return self.built_in

    @property
    def partials(self) -> tuple[Partial, ...]:
        """The partials that it needs, other than the number of rows."""
        return ()

    @property
    def why_in_python(self) -> str | None:
        """Reason why kernels cannot evaluate it; None if they can."""
        return f"{self.kind}: user code"

    @property
    def takes_rows(self) -> bool:
        """Whether it is given whole rows, outside of kernels."""
        return self.why_in_python is not None

    @property
    def ordered_parts(self) -> Iterator[str]:
        """Descriptions of its parts that depend on the order of arrival."""
        yield from ()

    @property
    def owners(self) -> Mapping[str, str]:
        """Names of the user's functions for errors, by the result column of each."""
        return {}

    @property
    def user_function(self) -> RichFunction | None:
        """The user's function, which is opened and may have side outputs, if there is one."""
        return None

    @property
    def pair_process(self) -> PairProcess | None:
        """The user's function that its pairs go to, if there is one."""
        return None

    @property
    def without_process(self) -> Self:
        """The same function with pairs as results, not those of a user's function of them."""
        return self

    @property
    def kind(self) -> str:
        """One word for the kind of function."""
        return type(self).__name__.lower()

    def describe(self) -> str:
        """Return a description for ``explain()``."""
        return f"{self.kind}({', '.join(self.read_columns)})"

    def without(self, names: Container[str]) -> Self | None:
        """Return the function without some result columns; None if it cannot do without them."""
        del names
        return None

    def with_rows_since(self, since: Mapping[str, int]) -> Self:
        """Return the function with results that cover only rows since a start: see `Partial`."""
        del since
        return self

    def check_merging(self) -> None:
        """Refuse functions that windows that merge cannot have.

        Raises
        ------
        InvalidFunctionError
        """
        return


@dataclass(frozen=True)
class Aggregates(WindowFunction):
    """Incremental aggregates: only accumulators are stored, unless there is an evictor."""

    bound: tuple[BoundAggregate | BoundUserAggregate, ...]
    has_one_result = True

    @cached_property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """Columns that the aggregates read, each once."""
        names = (name for bound in self.bound for name in bound.columns)
        return tuple(dict.fromkeys(names))

    @cached_property
    def built_in(self) -> tuple[BoundAggregate, ...]:
        """The aggregates that kernels evaluate."""
        return tuple(bound for bound in self.bound if isinstance(bound, BoundAggregate))

    @property
    def needs_rows(self) -> tuple[BoundAggregate, ...]:
        """The aggregates that need all values of a window."""
        return tuple(bound for bound in self.built_in if bound.needs_rows)

    @property
    def of_users(self) -> tuple[BoundUserAggregate, ...]:
        """The aggregates that are user code."""
        return tuple(bound for bound in self.bound if isinstance(bound, BoundUserAggregate))

    def output_fields(self, schema: pa.Schema) -> tuple[pa.Field, ...]:
        """Return a column for each aggregate; values picked from rows keep their collation."""
        return tuple(bound.result_field(schema) for bound in self.bound)

    @property
    def compared_columns(self) -> tuple[str, ...]:
        """Columns that built-in aggregates compare."""
        return tuple(name for bound in self.built_in for name in bound.aggregate.compared_columns)

    @property
    def keeps_rows(self) -> bool:
        """Whether an aggregate needs all values of a window."""
        return bool(self.needs_rows)

    @property
    def why_rows(self) -> str | None:
        """The aggregates that need all values of a window."""
        names = ", ".join(bound.describe() for bound in self.needs_rows)
        return f"{names} needs all values of a window" if names else None

    @property
    def partials(self) -> tuple[Partial, ...]:
        """Partials of the built-in aggregates, each once."""
        partials = (partial for bound in self.built_in for partial in bound.partials)
        return tuple(dict.fromkeys(partials))

    @property
    def why_in_python(self) -> str | None:
        """The aggregates that are user code."""
        names = ", ".join(bound.describe() for bound in self.of_users)
        return f"{names}: user code" if names else None

    @property
    def ordered_parts(self) -> Iterator[str]:
        """Aggregates that pick rows, and those of users."""
        yield from (b.describe() for b in self.built_in if b.definition.order_dependent)
        yield from (b.describe() for b in self.of_users)

    @property
    def owners(self) -> Mapping[str, str]:
        """Names of the users' classes, by result column."""
        return {bound.name: type(bound.function).__name__ for bound in self.of_users}

    def without(self, names: Container[str]) -> Aggregates:
        """Return the function with the other aggregates."""
        return replace(self, bound=tuple(b for b in self.bound if b.name not in names))

    def with_rows_since(self, since: Mapping[str, int]) -> Aggregates:
        """Return the function with some aggregates that cover only rows since a start."""
        return replace(
            self,
            bound=tuple(
                b.with_rows_since(since[b.name])
                if isinstance(b, BoundAggregate) and b.name in since
                else b
                for b in self.bound
            ),
        )

    def describe(self) -> str:
        """Return the aggregates, as SQL would write them."""
        return ", ".join(f"{bound.name} = {bound.describe()}" for bound in self.bound)

    def check_merging(self) -> None:
        """Refuse users' aggregates without ``merge``."""
        for bound in self.of_users:
            kind = type(bound.function)
            if kind.merge is AggregateFunction.merge:
                rule = "windows that merge need an aggregate with merge()"
                raise InvalidFunctionError(rule, value=kind.__name__)


@dataclass(frozen=True)
class Collect(WindowFunction):
    """The rows of a window in order of arrival: a list for each column."""

    columns: tuple[str, ...]
    has_one_result = True
    #: Values are passed on.
    compared_columns = ()
    #: Kernels collect lists.
    why_in_python = None

    def without(self, names: Container[str]) -> Collect:
        """Return the lists of the other columns."""
        return replace(self, columns=tuple(name for name in self.columns if name not in names))

    def output_fields(self, schema: pa.Schema) -> tuple[pa.Field, ...]:
        """Return a list for each column."""
        fields = (schema.field(name) for name in self.columns)
        return tuple(pa.field(field.name, pa.list_(field.type)) for field in fields)

    @property
    def ordered_parts(self) -> Iterator[str]:
        """The lists."""
        yield "the order of collected rows"


@dataclass(frozen=True)
class Reduce(WindowFunction):
    """Combines two rows into one of the same columns (Flink: ReduceFunction), in Python.

    ``function(earlier, later)`` takes and returns rows of exactly ``columns``.
    """

    function: Callable[[Row, Row], Row]
    columns: tuple[str, ...]
    has_one_result = True
    #: Values are passed on.
    compared_columns = ()
    #: One reduced row is stored instead.
    keeps_rows = False

    def output_fields(self, schema: pa.Schema) -> tuple[pa.Field, ...]:
        """Return the columns of the rows."""
        fields = (schema.field(name) for name in self.columns)
        return tuple(pa.field(field.name, field.type) for field in fields)

    @property
    def ordered_parts(self) -> Iterator[str]:
        """The function of two rows."""
        yield self.kind

    @property
    def owners(self) -> Mapping[str, str]:
        """The name of the user's function, for each column."""
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return dict.fromkeys(self.columns, name)
