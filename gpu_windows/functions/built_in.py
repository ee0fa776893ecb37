"""Window functions over the rows as they come: aggregates, lists, two rows into one."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from gpu_windows.aggregates.collations import compared_columns, with_collations_of
from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.aggregates.partials import Partial
from gpu_windows.aggregates.user import AggregateFunction, BoundUserAggregate
from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.base import WindowFunction
from gpu_windows.vocabulary.triggers.base import Row


@dataclass(frozen=True)
class Aggregates(WindowFunction):
    """Incremental aggregates: only accumulators are kept, unless there is an evictor."""

    bound: tuple[BoundAggregate | BoundUserAggregate, ...]

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """Columns that the aggregates read, each once."""
        names = (name for bound in self.bound for name in bound.columns)
        return tuple(dict.fromkeys(names))

    @property
    def gives_one(self) -> bool:
        """A row of them."""
        return True

    @property
    def built_in(self) -> tuple[BoundAggregate, ...]:
        """The aggregates that kernels know."""
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
        """Return a column for each aggregate; values that it carries keep their collation."""
        fields = [pa.field(bound.name, bound.result_type) for bound in self.bound]
        for place, bound in enumerate(self.bound):
            if isinstance(bound, BoundAggregate):
                fields[place] = with_collations_of(fields[place], bound.aggregate, schema)
        return tuple(fields)

    @property
    def compared_columns(self) -> tuple[str, ...]:
        """Columns that built-in aggregates compare."""
        return tuple(name for bound in self.built_in for name in compared_columns(bound.aggregate))

    @property
    def keeps_rows(self) -> bool:
        """Whether an aggregate needs all values."""
        return bool(self.needs_rows)

    @property
    def why_rows(self) -> str | None:
        """The aggregates that need all values."""
        names = ", ".join(bound.describe() for bound in self.needs_rows)
        return f"{names} needs all values of a window" if names else None

    @property
    def partials(self) -> tuple[Partial, ...]:
        """Those of the built-in aggregates, each once."""
        wanted = (partial for bound in self.built_in for partial in bound.partials)
        return tuple(dict.fromkeys(wanted))

    @property
    def why_in_python(self) -> str | None:
        """The aggregates that are user code."""
        names = ", ".join(bound.describe() for bound in self.of_users)
        return f"{names}: user code" if names else None

    @property
    def ordered_parts(self) -> Iterator[str]:
        """Those that pick rows, and those of users."""
        yield from (b.describe() for b in self.built_in if b.definition.order_dependent)
        yield from (b.describe() for b in self.of_users)

    @property
    def owners(self) -> Mapping[str, str]:
        """The names of the users' classes."""
        return {bound.name: type(bound.function).__name__ for bound in self.of_users}

    def without(self, names: Container[str]) -> Aggregates:
        """Return the other aggregates."""
        return replace(self, bound=tuple(b for b in self.bound if b.name not in names))

    def begun(self, since: Mapping[str, int]) -> Aggregates:
        """Return the same, where some have rows from a start on."""
        return replace(
            self,
            bound=tuple(
                b.begun(since[b.name]) if isinstance(b, BoundAggregate) and b.name in since else b
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
    """All rows of a window in order of arrival: one list per column."""

    columns: tuple[str, ...]

    @property
    def gives_one(self) -> bool:
        """One row."""
        return True

    @property
    def compared_columns(self) -> tuple[str, ...]:
        """None: values are handed on."""
        return ()

    def without(self, names: Container[str]) -> Collect:
        """Return the lists of the other columns."""
        return replace(self, columns=tuple(name for name in self.columns if name not in names))

    def output_fields(self, schema: pa.Schema) -> tuple[pa.Field, ...]:
        """Return a list of each column."""
        fields = (schema.field(name) for name in self.columns)
        return tuple(pa.field(field.name, pa.list_(field.type)) for field in fields)

    @property
    def why_in_python(self) -> str | None:
        """Kernels collect."""
        return None

    @property
    def ordered_parts(self) -> Iterator[str]:
        """The lists."""
        yield "the order of collected rows"


@dataclass(frozen=True)
class Reduce(WindowFunction):
    """Two rows become one of the same columns (Flink: ReduceFunction); row at a time, in Python.

    ``function(earlier, later)`` takes and returns rows of exactly ``columns``.
    """

    function: Callable[[Row, Row], Row]
    columns: tuple[str, ...]

    @property
    def gives_one(self) -> bool:
        """One row."""
        return True

    @property
    def compared_columns(self) -> tuple[str, ...]:
        """None: values are handed on."""
        return ()

    def output_fields(self, schema: pa.Schema) -> tuple[pa.Field, ...]:
        """Return the columns themselves."""
        fields = (schema.field(name) for name in self.columns)
        return tuple(pa.field(field.name, field.type) for field in fields)

    @property
    def keeps_rows(self) -> bool:
        """One row is kept, whatever their number."""
        return False

    @property
    def ordered_parts(self) -> Iterator[str]:
        """The function of two rows."""
        yield self.kind

    @property
    def owners(self) -> Mapping[str, str]:
        """The name of the user's function."""
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return dict.fromkeys(self.columns, name)
