"""Users' functions over the pairs of joins: any number of rows for each pair."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from gpu_windows.functions.co_group import WindowContext
from gpu_windows.functions.declarations import check_declaration, check_function
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
    """The context of a pair of an interval join.

    Examples
    --------
    >>> class Times(gw.functions.ProcessJoinFunction):
    ...     def process_element(self, left, right, context: gw.typing.IntervalPairContext):
    ...         return [{"at": context.timestamp, "id_seen": context.key["id"]}]
    >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
    >>> asked = gw.stream(pa.table({"id": [7], "ts": [0]})).event_time("ts", in_order)
    >>> answered = gw.stream(pa.table({"id": [7], "ts": [250_000]})).event_time("ts", in_order)
    >>> pairs = asked.key_by("id").interval_join(answered.key_by("id")).between("0 s", "1 s")
    >>> pairs.process(Times(), output="at BIGINT, id_seen BIGINT").to_pylist()
    [{'id': 7, 'at': 250000, 'id_seen': 7}]
    """

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
    """The context of a pair of a window join.

    Examples
    --------
    >>> class Keys(gw.functions.FlatJoinFunction):
    ...     def join(self, left, right, context: gw.typing.WindowPairContext):
    ...         return [{"line": f"{context.key['item']}: {left['count']} at {right['price']}"}]
    >>> ends = gw.GlobalWindows.create_with_end_of_stream_trigger()
    >>> sales = gw.stream(pa.table({"item": ["tea", "tea"], "count": [1, 3]})).key_by("item")
    >>> prices = gw.stream(pa.table({"item": ["tea"], "price": [2.5]})).key_by("item")
    >>> pairs = sales.join(prices).window(ends)
    >>> pairs.process(Keys(), ["count"], ["price"], output="line STRING")["line"].to_pylist()
    ['tea: 1 at 2.5', 'tea: 3 at 2.5']
    """


class ProcessJoinFunction(RichFunction, ABC):
    """Processes every pair of an interval join (Flink: ProcessJoinFunction); has no state.

    Examples
    --------
    >>> class Delay(gw.functions.ProcessJoinFunction):
    ...     def process_element(self, left, right, context):
    ...         return [{"ms": (context.right_timestamp - context.left_timestamp) // 1000}]
    >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
    >>> asked = gw.stream(pa.table({"id": [7], "ts": [0]})).event_time("ts", in_order)
    >>> answered = gw.stream(pa.table({"id": [7], "ts": [250_000]})).event_time("ts", in_order)
    >>> pairs = asked.key_by("id").interval_join(answered.key_by("id")).between("0 s", "1 s")
    >>> pairs.process(Delay(), output="ms BIGINT").to_pylist()
    [{'id': 7, 'ms': 250}]
    """

    @abstractmethod
    def process_element(
        self, left: Row | None, right: Row | None, context: IntervalPairContext
    ) -> Given:
        """Process a pair; return rows of the declared columns: a list, a generator, or None.

        ``left`` and ``right`` are names of the selected columns to values; None for a row without
        a match.
        """


class FlatJoinFunction(RichFunction, ABC):
    """Processes every pair of a window join (Flink: FlatJoinFunction); has no state.

    Examples
    --------
    >>> class Worth(gw.functions.FlatJoinFunction):
    ...     def join(self, left, right, context):
    ...         return [{"worth": left["count"] * right["price"]}]
    >>> ends = gw.GlobalWindows.create_with_end_of_stream_trigger()
    >>> sales = gw.stream(pa.table({"item": ["tea", "tea"], "count": [1, 3]})).key_by("item")
    >>> prices = gw.stream(pa.table({"item": ["tea"], "price": [2.5]})).key_by("item")
    >>> pairs = sales.join(prices).window(ends)
    >>> pairs.process(Worth(), ["count"], ["price"], output="worth DOUBLE")["worth"].to_pylist()
    [2.5, 7.5]
    """

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
