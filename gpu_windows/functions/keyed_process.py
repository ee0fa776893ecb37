"""Functions of users that see the rows of a key one by one, with state, timers and side outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.expressions.nanoseconds import python_values
from gpu_windows.functions.checks import check_declaration, check_function
from gpu_windows.functions.declared import Declares
from gpu_windows.functions.keyed_state import (
    AppendingState,
    ListState,
    MapState,
    StateDescriptor,
    ValueState,
    check_states,
)
from gpu_windows.functions.side_outputs import check_side_outputs
from gpu_windows.functions.two_inputs import SIDE
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.rich_functions import FunctionContext, RuntimeContext, declared
from gpu_windows.vocabulary.triggers.base import Row

#: What a function gives for a row or a timer: rows of the declared columns, or nothing.
Given: TypeAlias = Iterable[Mapping[str, object]] | None
#: Takes a row and the context.
Handler: TypeAlias = Callable[[Row, Any], Given]
#: State that a function declared.
AnyState: TypeAlias = ValueState | ListState | MapState | AppendingState


class OpenContext(RuntimeContext, Protocol):
    """What a function may ask before the first row."""

    def state(self, name: str) -> Any:
        """Return the state of this name: always that of the key at hand, so it may be kept."""


class BaseContext(FunctionContext, Protocol):
    """What a process function may ask for every row and timer. Times in ticks (microseconds)."""

    @property
    def timestamp(self) -> int | None:
        """The row's event time, or the time of the timer; None where rows were given no time."""

    @property
    def current_watermark(self) -> int:
        """The watermark; -2**63 before the first one."""

    @property
    def current_processing_time(self) -> int:
        """Processing time: on a stream that of the micro-batch."""


class KeyedContext(BaseContext, Protocol):
    """What a process function may ask where a key is at hand."""

    @property
    def key(self) -> Row:
        """The key at hand: names of key columns to values."""

    def register_event_time_timer(self, time: int) -> None:
        """Have `on_timer` called for this key once the watermark reaches ``time``.

        The same time again is the same timer. A time that the watermark has passed already is due
        at its next advance, as in Flink.
        """

    def delete_event_time_timer(self, time: int) -> None:
        """Take a timer of this key back; nothing happens if there is none."""

    def register_processing_time_timer(self, time: int) -> None:
        """Have `on_timer` called for this key once processing time reaches ``time``.

        The function must say `uses_processing_time`. On a bounded input such timers never fire;
        they are counted as ``processing_time_timers_left``.

        Raises
        ------
        InvalidFunctionError
            If the function does not say that it uses processing time.
        """

    def delete_processing_time_timer(self, time: int) -> None:
        """Take a timer of this key back; nothing happens if there is none."""

    def state(self, name: str) -> Any:
        """Return the state of this name: always that of the key at hand."""


class TimerContext(KeyedContext, Protocol):
    """What a function may ask when a timer fires."""

    @property
    def time_domain(self) -> Literal["event_time", "processing_time"]:
        """Of which time the timer is."""


class Stateful(Declares):
    """What functions over single rows of keys declare, and may override."""

    @declared
    def state(self) -> Mapping[str, StateDescriptor]:
        """State of each key, by name."""
        return {}

    def open(self, context: OpenContext) -> None:
        """Get ready, once in a Python worker, before its first row."""

    def on_timer(self, time: int, context: TimerContext) -> Given:
        """Take a timer of the key at hand; return result rows."""
        del context
        raise NotImplementedError(f"{type(self).__name__} sets timers, and has no on_timer: {time}")


class KeyedProcessFunction(Stateful, ABC):
    """Sees every row of a key in order of arrival (Flink: KeyedProcessFunction).

    Returns rows of the declared columns: a list or an iterator of mappings (so it may be a
    generator), or None. It may keep state, which it declares, and set timers.
    """

    @abstractmethod
    def process_element(self, row: Row, context: KeyedContext) -> Given:
        """Take a row of the key at hand: names of the chosen columns to values."""


class KeyedCoProcessFunction(Stateful, ABC):
    """Sees the rows of two connected streams; state and timers are of both.

    Flink: KeyedCoProcessFunction.
    """

    @abstractmethod
    def process_element1(self, row: Row, context: KeyedContext) -> Given:
        """Take a row of the left stream."""

    @abstractmethod
    def process_element2(self, row: Row, context: KeyedContext) -> Given:
        """Take a row of the right stream."""


@dataclass(frozen=True)
class UserProcess(ABC):
    """A user's function over rows of keys, as a value.

    Parameters
    ----------
    function : Declares
    output : pyarrow.Schema
        Columns of its results, after the keys.
    """

    function: Declares
    output: pa.Schema
    #: Whether rows were given a time.
    is_timed: bool = field(default=True, kw_only=True)

    #: The class that the function must be of.
    kind: ClassVar[type[Declares]]
    #: Whether it takes the rows of many keys at once, as arrays.
    in_batches: ClassVar[bool] = False
    #: The column of its results that is never before the time of the row, where one is known to be.
    result_time: ClassVar[str | None] = None
    #: Whether the rows of one of its inputs go to every shard.
    broadcasts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_function(self.function, self.kind)
        check_declaration(self.output)
        self._check_state()
        check_side_outputs(self.function.side_outputs, self.name)

    @abstractmethod
    def _check_state(self) -> None:
        """Raise `InvalidFunctionError` for state that is not declared as it has to be."""

    @property
    def name(self) -> str:
        """What errors call it."""
        return type(self.function).__name__

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Columns of the rows that are read, each once."""

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """First and last time of a row that it can take: all."""
        return LONG_MIN, LONG_MAX

    @property
    def order_free(self) -> bool:
        """Whether the order in which rows arrive means nothing to it."""
        return False

    def describe(self) -> str:
        """Return what is computed, for ``explain()``."""
        return f"{self.name}({', '.join(self.columns)})"


@dataclass(frozen=True)
class RowProcess(UserProcess):
    """A user's function over single rows, as a value. Parameters: see `UserProcess`."""

    function: Stateful

    def _check_state(self) -> None:
        check_states(self.function.state, self.name)

    @abstractmethod
    def rows(self, batch: pa.Table) -> Iterator[tuple[Handler, Row]]:
        """Yield what takes each row of a batch, and the row as it sees it."""


@dataclass(frozen=True)
class KeyedProcess(RowProcess):
    """A `KeyedProcessFunction`, and the columns that it sees.

    Parameters
    ----------
    function : KeyedProcessFunction
    output : pyarrow.Schema
    seen : tuple of str
        The columns that it sees.
    shown : tuple of str
        What it calls them.
    """

    seen: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    kind = KeyedProcessFunction

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it sees."""
        return self.seen

    def rows(self, batch: pa.Table) -> Iterator[tuple[Handler, Row]]:
        """Yield the one handler and each row."""
        assert isinstance(self.function, KeyedProcessFunction)
        names = dict(zip(self.shown, self.seen, strict=True))
        return zip(repeat(self.function.process_element), dicts(batch, names), strict=False)


@dataclass(frozen=True)
class KeyedCoProcess(RowProcess):
    """A `KeyedCoProcessFunction`, and the columns that it sees of each side.

    Parameters
    ----------
    function : KeyedCoProcessFunction
    output : pyarrow.Schema
    left, right : tuple of (str, str)
        Names as the function sees them, and the columns of the two inputs as one.
    """

    left: tuple[tuple[str, str], ...] = ()
    right: tuple[tuple[str, str], ...] = ()
    kind = KeyedCoProcessFunction

    @property
    def columns(self) -> tuple[str, ...]:
        """The column that tells sides apart, and those of both."""
        return (SIDE, *(column for _, column in (*self.left, *self.right)))

    def rows(self, batch: pa.Table) -> Iterator[tuple[Handler, Row]]:
        """Yield the handler of its side and each row."""
        function = self.function
        assert isinstance(function, KeyedCoProcessFunction)
        is_left = batch.column(SIDE)
        lefts = dicts(batch.filter(is_left), dict(self.left))
        rights = dicts(batch.filter(pc.invert(is_left)), dict(self.right))
        one, two = function.process_element1, function.process_element2
        return ((one, next(lefts)) if left else (two, next(rights)) for left in is_left.to_pylist())


def dicts(batch: pa.Table, names: Mapping[str, str]) -> Iterator[Row]:
    """Return rows: names to values of columns, as Python's own."""
    if not names:
        return ({} for _ in range(batch.num_rows))  # each its own: functions may write into it
    columns = [python_values(batch.column(column), name) for name, column in names.items()]
    shown = tuple(names)
    return (dict(zip(shown, row, strict=True)) for row in zip(*columns, strict=True))
