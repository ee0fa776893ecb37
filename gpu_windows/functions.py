"""Window functions: what becomes of the rows of a window that fires."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import pyarrow as pa

from gpu_windows.aggregates import BoundAggregate
from gpu_windows.triggers.base import AnyWindow, Row
from gpu_windows.user_aggregates import BoundUserAggregate


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
    """All rows of a window, or aggregates of them, for a function of the user's.

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
    """

    function: ProcessWindowFunction
    columns: tuple[str, ...]
    output: pa.Schema
    rows: Literal["arrow", "pandas"] = "arrow"
    aggregates: Aggregates | None = None


WindowFunction = Aggregates | Collect | Reduce | Process
