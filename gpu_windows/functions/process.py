"""Users' functions over the rows of one window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.errors import InvalidFunctionError, QueryError
from gpu_windows.functions.declarations import (
    RowsAs,
    check_declaration,
    check_function,
    check_state_types,
)
from gpu_windows.functions.window import Aggregates, Reduce, WindowFunction
from gpu_windows.vocabulary.rich_functions import FunctionContext, RichFunction, declaration
from gpu_windows.vocabulary.triggers.base import AnyWindow, Row


class WindowState(Protocol):
    """State of a process function, whose names and Arrow types the function declares."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of this name, or ``default`` without one."""

    def put(self, name: str, value: Any) -> None:
        """Set a value of the declared type."""

    def remove(self, name: str) -> None:
        """Remove the value of this name."""


class ProcessContext(FunctionContext, Protocol):
    """The context of a window that fires. Times in ticks.

    Examples
    --------
    A function that numbers the windows of a key:

    >>> class Numbered(gw.functions.ProcessWindowFunction):
    ...     key_state = {"windows": pa.int64()}
    ...
    ...     def process(self, key, context, rows):
    ...         number = context.key_state.get("windows", 0)
    ...         context.key_state.put("windows", number + 1)
    ...         return [{"number": number, "rows": len(rows)}]
    >>> users = gw.stream(pa.table({"user": ["ann"] * 4, "page": ["a", "b", "c", "d"]})).key_by(
    ...     "user"
    ... )
    >>> windows = users.count_window(2).process(
    ...     Numbered(), ["page"], output="number BIGINT, rows BIGINT"
    ... )
    >>> windows.select(["number", "rows"]).to_pylist()
    [{'number': 0, 'rows': 2}, {'number': 1, 'rows': 2}]
    """

    @property
    def window(self) -> AnyWindow:
        """The window: ``start``, ``end`` (None for the global one), ``max_timestamp``."""

    @property
    def current_watermark(self) -> int:
        """The watermark; -2**63 before the first one."""

    @property
    def current_processing_time(self) -> int:
        """Processing time, in ticks."""

    @property
    def window_state(self) -> WindowState:
        """State of this key and window; not for windows that merge."""

    @property
    def key_state(self) -> WindowState:
        """State of this key, for all its windows."""


class ProcessWindowFunction(RichFunction, ABC):
    """Processes all rows of a window at once (Flink: ProcessWindowFunction).

    Examples
    --------
    >>> class Spread(gw.functions.ProcessWindowFunction):
    ...     def process(self, key, context, rows):
    ...         prices = rows["price"].to_pylist()
    ...         return [{"spread": max(prices) - min(prices)}]
    >>> prices = gw.stream(pa.table({"item": ["tea"] * 3, "price": [3.0, 5.0, 4.5]}))
    >>> threes = prices.key_by("item").count_window(3)
    >>> threes.process(Spread(), ["price"], output="spread DOUBLE")["spread"].to_pylist()
    [2.0]
    """

    @declaration
    def window_state(self) -> Mapping[str, pa.DataType]:
        """Names to Arrow types of the state of each key and window."""
        return {}

    @declaration
    def key_state(self) -> Mapping[str, pa.DataType]:
        """Names to Arrow types of the state of each key."""
        return {}

    @abstractmethod
    def process(
        self, key: Row, context: ProcessContext, rows: Any
    ) -> Iterable[Mapping[str, object]]:
        """Return the result rows of a window, each a mapping of the declared output columns.

        ``rows`` is a pyarrow.Table, or a pandas.DataFrame with ``rows="pandas"``, in order of
        arrival.
        """

    def clear(self, context: ProcessContext) -> None:
        """Called when the window is dropped; removes its window state unless overridden."""
        for name in self.window_state:
            context.window_state.remove(name)


@dataclass(frozen=True)
class Process(WindowFunction):
    """A user's function of the rows of a window, or of one row that they are aggregated to.

    Parameters
    ----------
    function : ProcessWindowFunction
    columns : tuple of str
        Columns of the rows that it is given.
    output : pyarrow.Schema
        Columns of its results.
    rows : {"arrow", "pandas"}
        How the function is given rows: as a pyarrow.Table or a pandas.DataFrame.
    aggregates : Aggregates, optional
        If given, the function gets one row of these (Flink: incremental aggregation with
        ProcessWindowFunction), and the rows of the window are not stored.
    reduce : callable, optional
        If given, the function gets the one row that this makes of ``columns``, as in `Reduce`; the
        rows of the window are not stored either.
    """

    function: ProcessWindowFunction
    columns: tuple[str, ...]
    output: pa.Schema
    rows: RowsAs = "arrow"
    aggregates: Aggregates | None = None
    reduce: Callable[[Row, Row], Row] | None = None
    #: Values are passed on.
    compared_columns = ()

    def __post_init__(self) -> None:
        check_function(self.function, ProcessWindowFunction)
        check_declaration(self.output, self.rows)
        for what in ("window_state", "key_state"):
            check_state_types(getattr(self.function, what), type(self.function).__name__, what)
        if self.aggregates is not None and self.reduce is not None:
            rule = "a process function sees aggregates or a reduced row, not both"
            raise QueryError(rule, value=", ".join(bound.name for bound in self.aggregates.bound))
        if self.reduce is not None and not callable(self.reduce):
            raise QueryError("reduce= is a function of two rows", value=repr(self.reduce))

    @property
    def incremental(self) -> Aggregates | Reduce | None:
        """The incremental aggregation of the rows; None if the function gets the rows."""
        return self.aggregates if self.reduce is None else Reduce(self.reduce, self.columns)

    @property
    def incremental_aggregates(self) -> tuple[BoundAggregate, ...]:
        """The built-in aggregates that the function is given."""
        return () if self.aggregates is None else self.aggregates.built_in

    @property
    def read_columns(self) -> tuple[str, ...]:
        """The columns that the function reads, or the incremental aggregation before it."""
        return self.columns if self.incremental is None else self.incremental.columns

    def output_fields(self, schema: pa.Schema) -> tuple[pa.Field, ...]:
        """Return the columns that the function declares."""
        del schema
        return tuple(self.output)

    @property
    def keeps_rows(self) -> bool:
        """Whether the function gets the rows."""
        return self.incremental is None

    @property
    def takes_rows(self) -> bool:
        """Whether user code gets the rows, not only results of built-in aggregates."""
        made = self.incremental
        return True if made is None else made.takes_rows

    @property
    def ordered_parts(self) -> Iterator[str]:
        """The function."""
        yield "the process function"

    @property
    def user_function(self) -> ProcessWindowFunction:
        """The function."""
        return self.function

    @property
    def owners(self) -> Mapping[str, str]:
        """The name of the user's class, for each result column."""
        return dict.fromkeys(self.output.names, type(self.function).__name__)

    def check_merging(self) -> None:
        """Refuse state for each window: merged windows would share it."""
        if self.function.window_state:
            rule = "windows that merge cannot have state for each window"
            raise InvalidFunctionError(rule, value=", ".join(self.function.window_state))
        if self.incremental is not None:
            self.incremental.check_merging()
