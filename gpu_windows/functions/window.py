"""Window functions: what becomes of the rows of a window that fires."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.aggregates.user import BoundUserAggregate
from gpu_windows.errors import QueryError
from gpu_windows.functions.checked_results import checked_table
from gpu_windows.triggers.base import AnyWindow, Row

#: How a function of the user's sees rows: as a pyarrow.Table or a pandas.DataFrame.
RowsAs: TypeAlias = Literal["arrow", "pandas"]


class KeptState(Protocol):
    """State that a process function keeps; names and Arrow types are declared by the function."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return what was kept under ``name``."""

    def put(self, name: str, value: Any) -> None:
        """Keep a value of the declared type."""

    def remove(self, name: str) -> None:
        """Forget what was kept under ``name``."""


class ProcessContext(Protocol):
    """What a process function may ask of the operator. Times in ticks."""

    @property
    def window(self) -> AnyWindow:
        """The window: ``start``, ``end`` (None for the global one), ``max_timestamp``."""

    @property
    def current_watermark(self) -> int:
        """The watermark; -2**63 before the first one."""

    @property
    def current_processing_time(self) -> int:
        """The clock."""

    @property
    def window_state(self) -> KeptState:
        """State of this key and window; not for windows that merge."""

    @property
    def key_state(self) -> KeptState:
        """State of this key, for all its windows."""


class ProcessWindowFunction(ABC):
    """Gets all rows of a window at once (Flink: ProcessWindowFunction)."""

    @property
    def window_state(self) -> Mapping[str, pa.DataType]:
        """Name to Arrow type of what is kept for each key and window."""
        return {}

    @property
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
class WindowBatch:
    """Many windows that fired, and their rows.

    Parameters
    ----------
    windows : pyarrow.Table
        n rows: the key columns, ``window_start`` and ``window_end`` (int64 ticks; null for the
        global window).
    rows : pyarrow.Table
        The rows of all windows, one window after the other, each in order of arrival.
    offsets : int64[n + 1]
        The rows of window i are ``rows[offsets[i] : offsets[i + 1]]``.
    """

    windows: pa.Table
    rows: pa.Table
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.windows)

    @property
    def places(self) -> NDArray[np.int64]:
        """The window of every row: int64[rows]."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))


#: The results of many windows: a row for each, or any number and the window of each (ascending).
Found: TypeAlias = pa.Table | tuple[pa.Table, NDArray[np.int64]]


class VectorWindowFunction(ABC):
    """Gets all rows of many windows at once, as Arrow; keeps no state."""

    #: Whether the order of the rows of a window means nothing to it.
    order_free: ClassVar[bool] = False

    @abstractmethod
    def process(self, batch: WindowBatch) -> Found:
        """Return the declared output columns: a row for each window, in their order.

        Or any number of rows, and for each the place of its window in the batch (int64[m],
        ascending). How windows are put into batches means nothing; several batches may be worked
        at in several threads at once.
        """

    def pieces(self, batch: WindowBatch) -> Iterator[Found]:
        """Yield what `process` gives piece by piece, if that is too much at once."""
        yield self.process(batch)

    def describe(self) -> str:
        """Return what is computed, for ``explain()``."""
        return "vectorised"

    @property
    def called(self) -> str:
        """What errors call it."""
        return type(self).__name__


@dataclass(frozen=True)
class Vectorised:
    """All rows of many windows for a function of the user's that takes columns.

    Parameters
    ----------
    function : VectorWindowFunction
    columns : tuple of str
        Columns of the rows that it sees.
    output : pyarrow.Schema
        Columns of its results.
    """

    function: VectorWindowFunction
    columns: tuple[str, ...]
    output: pa.Schema

    def __post_init__(self) -> None:
        check_function(self.function, VectorWindowFunction)
        check_declared(self.output)

    @property
    def in_pieces(self) -> bool:
        """Whether the function gives its results piece by piece."""
        return type(self.function).pieces is not VectorWindowFunction.pieces

    def call(self, batch: WindowBatch) -> Iterator[tuple[pa.Table, NDArray[np.int64]]]:
        """Call the function; yield its results and the window of each, piece by piece.

        Raises
        ------
        InvalidFunctionError
            If the results are not what was declared.
        """
        for found in self.function.pieces(batch):
            yield checked_table(found, len(batch), self.output, self.function.called)


@dataclass(frozen=True)
class Aggregates:
    """Incremental aggregates: only accumulators are kept, unless there is an evictor."""

    bound: tuple[BoundAggregate | BoundUserAggregate, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the aggregates read, each once."""
        names = (name for bound in self.bound for name in bound.columns)
        return tuple(dict.fromkeys(names))

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


@dataclass(frozen=True)
class Process:
    """All rows of a window, or what they were made of them as they came, for a user's function.

    Parameters
    ----------
    function : ProcessWindowFunction
    columns : tuple of str
        Columns of the rows that it sees.
    output : pyarrow.Schema
        Columns of its results.
    rows : {"arrow", "pandas"}
    aggregates : Aggregates, optional
        Then the function sees one row, of these (Flink: incremental aggregation with
        ProcessWindowFunction), and the rows of the window are not kept.
    reduce : callable, optional
        Then it sees the one row that this, as of `Reduce`, makes of ``columns``; the same holds.
    """

    function: ProcessWindowFunction
    columns: tuple[str, ...]
    output: pa.Schema
    rows: RowsAs = "arrow"
    aggregates: Aggregates | None = None
    reduce: Callable[[Row, Row], Row] | None = None

    def __post_init__(self) -> None:
        check_function(self.function, ProcessWindowFunction)
        check_declared(self.output, self.rows)
        if self.aggregates is not None and self.reduce is not None:
            rule = "a process function sees aggregates or a reduced row, not both"
            raise QueryError(rule, value=", ".join(bound.name for bound in self.aggregates.bound))
        if self.reduce is not None and not callable(self.reduce):
            raise QueryError("reduce= is a function of two rows", value=repr(self.reduce))

    @property
    def incremental(self) -> Aggregates | Reduce | None:
        """What is made of the rows as they come; None if the function sees the rows."""
        return self.aggregates if self.reduce is None else Reduce(self.reduce, self.columns)


def check_function(function: Any, *kinds: type) -> None:
    """Raise `QueryError` for what is no function of one of some kinds."""
    if not isinstance(function, kinds):
        names = " or ".join(f"a {kind.__name__}" for kind in kinds)
        raise QueryError(f"process takes {names}", value=repr(function))


def check_declared(output: Any, rows: Any = "arrow") -> None:
    """Raise `QueryError` for results or rows that are not declared as functions need them."""
    if not isinstance(output, pa.Schema):
        rule = "output= is a pyarrow.Schema, such as pa.schema([('total', pa.float64())])"
        raise QueryError(rule, value=repr(output))
    if rows not in get_args(RowsAs):
        raise QueryError(f"rows= is one of {', '.join(get_args(RowsAs))}", value=repr(rows))


def owners(function: Any) -> dict[str, str]:
    """Return what errors call the user's functions, by the result column that each gives."""
    match function:
        case Process():
            return dict.fromkeys(function.output.names, type(function.function).__name__)
        case Reduce():
            name = getattr(function.function, "__name__", type(function.function).__name__)
            return dict.fromkeys(function.columns, name)
        case Aggregates():
            return {bound.name: type(bound.function).__name__ for bound in function.of_users}
        case _:
            return {}


WindowFunction = Aggregates | Collect | Reduce | Process | Vectorised
