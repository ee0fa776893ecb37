"""Functions of users that see the rows of one window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.errors import InvalidFunctionError, QueryError
from gpu_windows.functions.base import WindowFunction
from gpu_windows.functions.built_in import Aggregates, Reduce
from gpu_windows.functions.checks import RowsAs, check_declaration, check_function
from gpu_windows.functions.declared import check_state_types
from gpu_windows.vocabulary.rich_functions import FunctionContext, RichFunction, declared
from gpu_windows.vocabulary.triggers.base import AnyWindow, Row


class KeptState(Protocol):
    """State that a process function keeps; names and Arrow types are declared by the function."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return what was kept under ``name``."""

    def put(self, name: str, value: Any) -> None:
        """Keep a value of the declared type."""

    def remove(self, name: str) -> None:
        """Forget what was kept under ``name``."""


class ProcessContext(FunctionContext, Protocol):
    """What a process function may ask of the operator. Times in ticks."""

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
    def window_state(self) -> KeptState:
        """State of this key and window; not for windows that merge."""

    @property
    def key_state(self) -> KeptState:
        """State of this key, for all its windows."""


class ProcessWindowFunction(RichFunction, ABC):
    """Gets all rows of a window at once (Flink: ProcessWindowFunction)."""

    @declared
    def window_state(self) -> Mapping[str, pa.DataType]:
        """Name to Arrow type of what is kept for each key and window."""
        return {}

    @declared
    def key_state(self) -> Mapping[str, pa.DataType]:
        """Name to Arrow type of what is kept for each key."""
        return {}

    @abstractmethod
    def process(
        self, key: Row, context: ProcessContext, rows: Any
    ) -> Iterable[Mapping[str, object]]:
        """Return the result rows of a window, each a mapping of the declared output columns.

        ``rows`` is a pyarrow.Table, or a pandas.DataFrame where that was asked for, in order of
        arrival.
        """

    def clear(self, context: ProcessContext) -> None:
        """Called when the window is dropped; forgets its window state unless overridden."""
        for name in self.window_state:
            context.window_state.remove(name)


@dataclass(frozen=True)
class Process(WindowFunction):
    """A user's function of the rows of a window, or of the one row that they were aggregated to.

    Parameters
    ----------
    function : ProcessWindowFunction
    columns : tuple of str
        Columns of the rows that it sees.
    output : pyarrow.Schema
        Columns of its results.
    rows : {"arrow", "pandas"}
        How the function sees rows: as a pyarrow.Table or a pandas.DataFrame.
    aggregates : Aggregates, optional
        Then the function sees one row, of these (Flink: incremental aggregation with
        ProcessWindowFunction), and the rows of the window are not kept.
    reduce : callable, optional
        Then the function sees the one row that this makes of ``columns``, as in `Reduce`; the rows
        of the window are not kept either.
    """

    function: ProcessWindowFunction
    columns: tuple[str, ...]
    output: pa.Schema
    rows: RowsAs = "arrow"
    aggregates: Aggregates | None = None
    reduce: Callable[[Row, Row], Row] | None = None

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
        """What is made of the rows as they come; None if the function sees the rows."""
        return self.aggregates if self.reduce is None else Reduce(self.reduce, self.columns)

    @property
    def accumulated(self) -> tuple[BoundAggregate, ...]:
        """Those that the function sees."""
        return () if self.aggregates is None else self.aggregates.built_in

    @property
    def read_columns(self) -> tuple[str, ...]:
        """What is made of the rows as they come reads them, if anything is."""
        return self.columns if self.incremental is None else self.incremental.columns

    @property
    def compared_columns(self) -> tuple[str, ...]:
        """None: values are handed on."""
        return ()

    def output_fields(self, schema: pa.Schema) -> tuple[pa.Field, ...]:
        """Return the columns that were declared."""
        del schema
        return tuple(self.output)

    @property
    def keeps_rows(self) -> bool:
        """Whether the function sees the rows."""
        return self.incremental is None

    @property
    def takes_rows(self) -> bool:
        """Whether user code sees the rows: of built-in aggregates the function sees results."""
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
        """The name of the user's class."""
        return dict.fromkeys(self.output.names, type(self.function).__name__)

    def check_merging(self) -> None:
        """Refuse state for each window: there is no telling whose it would be."""
        if self.function.window_state:
            rule = "windows that merge cannot keep state for each window"
            raise InvalidFunctionError(rule, value=", ".join(self.function.window_state))
        if self.incremental is not None:
            self.incremental.check_merging()
