"""Users' functions over the pairs of joins: any number of rows for each pair."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from gpu_windows.functions.checks import check_declaration, check_function
from gpu_windows.functions.co_group import WindowContext
from gpu_windows.functions.keyed_process import Given
from gpu_windows.functions.side_outputs import check_side_outputs
from gpu_windows.vocabulary.rich_functions import FunctionContext, RichFunction
from gpu_windows.vocabulary.triggers.base import Row


class PairContext(FunctionContext, Protocol):
    """The context of a pair. Times in ticks (microseconds)."""

    @property
    def key(self) -> Row:
        """The key of both rows: names of key columns to values."""


class IntervalPairContext(PairContext, Protocol):
    """The context of a pair of an interval join."""

    @property
    def left_timestamp(self) -> int | None:
        """The time of the left row; None without a left row."""

    @property
    def right_timestamp(self) -> int | None:
        """The time of the right row; None without a right row."""

    @property
    def timestamp(self) -> int:
        """The time of the pair: the later one of both."""


class WindowPairContext(PairContext, WindowContext, Protocol):
    """The context of a pair of a window join."""


class ProcessJoinFunction(RichFunction, ABC):
    """Processes every pair of an interval join (Flink: ProcessJoinFunction); has no state."""

    @abstractmethod
    def process_element(
        self, left: Row | None, right: Row | None, context: IntervalPairContext
    ) -> Given:
        """Process a pair; return rows of the declared columns: a list, a generator, or None.

        ``left`` and ``right`` are names of the selected columns to values; None for a row without
        a match.
        """


class FlatJoinFunction(RichFunction, ABC):
    """Processes every pair of a window join (Flink: FlatJoinFunction); has no state."""

    @abstractmethod
    def join(self, left: Row | None, right: Row | None, context: WindowPairContext) -> Given:
        """Process a pair; see `ProcessJoinFunction.process_element`."""


@dataclass(frozen=True)
class PairProcess(ABC):
    """A user's function over pairs, as a value.

    Parameters
    ----------
    function : RichFunction
        A `kind`.
    output : pyarrow.Schema
        Columns of its results.
    left, right : tuple of (str, str)
        Names that the function is given, and columns of the pairs.
    """

    function: RichFunction
    output: pa.Schema
    left: tuple[tuple[str, str], ...]
    right: tuple[tuple[str, str], ...]

    #: The class that the function must be of, and its method for pairs.
    kind: ClassVar[type[RichFunction]]
    method: ClassVar[str]

    def __post_init__(self) -> None:
        check_function(self.function, self.kind)
        check_declaration(self.output)
        check_side_outputs(self.function.side_outputs, self.name)

    @property
    def name(self) -> str:
        """The name of the function for errors."""
        return type(self.function).__name__

    @property
    def handler(self) -> Any:
        """The method for pairs: it takes left row, right row and context."""
        return getattr(self.function, self.method)

    def describe(self) -> str:
        """Return a description for ``explain()``."""
        return f"{self.name}({', '.join(name for name, _ in (*self.left, *self.right))})"


class IntervalPairs(PairProcess):
    """A `ProcessJoinFunction`; `MARKS` have the times of rows. Parameters: see `PairProcess`."""

    kind = ProcessJoinFunction
    method = "process_element"


class WindowPairs(PairProcess):
    """A `FlatJoinFunction`. Parameters: see `PairProcess`."""

    kind = FlatJoinFunction
    method = "join"
