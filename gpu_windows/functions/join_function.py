"""Functions of users over the pairs of joins: any number of rows for each pair."""

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
    """What a function may ask for a pair. Times in ticks (microseconds)."""

    @property
    def key(self) -> Row:
        """The key of both rows: names of key columns to values."""


class IntervalPairContext(PairContext, Protocol):
    """What a function may ask for a pair of an interval join."""

    @property
    def left_timestamp(self) -> int | None:
        """The time of the left row; None if there is none."""

    @property
    def right_timestamp(self) -> int | None:
        """The time of the right row; None if there is none."""

    @property
    def timestamp(self) -> int:
        """The time of the pair: the later one of both."""


class WindowPairContext(PairContext, WindowContext, Protocol):
    """What a function may ask for a pair of a window join."""


class ProcessJoinFunction(RichFunction, ABC):
    """Sees every pair of an interval join (Flink: ProcessJoinFunction); keeps no state."""

    @abstractmethod
    def process_element(
        self, left: Row | None, right: Row | None, context: IntervalPairContext
    ) -> Given:
        """Take a pair; return rows of the declared columns: a list, a generator, or None.

        ``left`` and ``right`` are names of the chosen columns to values; None where the join gives
        a row without a partner.
        """


class FlatJoinFunction(RichFunction, ABC):
    """Sees every pair of a window join (Flink: FlatJoinFunction); keeps no state."""

    @abstractmethod
    def join(self, left: Row | None, right: Row | None, context: WindowPairContext) -> Given:
        """Take a pair; see `ProcessJoinFunction.process_element`."""


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
        Names as the function sees them, and the columns of the pairs.
    """

    function: RichFunction
    output: pa.Schema
    left: tuple[tuple[str, str], ...]
    right: tuple[tuple[str, str], ...]

    #: The class that the function must be of, and the method that takes pairs.
    kind: ClassVar[type[RichFunction]]
    method: ClassVar[str]

    def __post_init__(self) -> None:
        check_function(self.function, self.kind)
        check_declaration(self.output)
        check_side_outputs(self.function.side_outputs, self.name)

    @property
    def name(self) -> str:
        """What errors call it."""
        return type(self.function).__name__

    @property
    def handler(self) -> Any:
        """Takes left and right row and the context."""
        return getattr(self.function, self.method)

    def describe(self) -> str:
        """Return what is computed, for ``explain()``."""
        return f"{self.name}({', '.join(name for name, _ in (*self.left, *self.right))})"


class IntervalPairs(PairProcess):
    """A `ProcessJoinFunction`, and what it sees; marks are times. Parameters: see `PairProcess`."""

    kind = ProcessJoinFunction
    method = "process_element"


class WindowPairs(PairProcess):
    """A `FlatJoinFunction`, and what it sees. Parameters: see `PairProcess`."""

    kind = FlatJoinFunction
    method = "join"
