"""Users' functions over the rows of a key one by one, with state, timers and side outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import repeat
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.column_types.time_units import python_values
from gpu_windows.functions.declarations import (
    ProcessDeclarations,
    check_declaration,
    check_function,
)
from gpu_windows.functions.side_outputs import check_side_outputs
from gpu_windows.functions.state_descriptors import StateDescriptor, check_states
from gpu_windows.functions.two_inputs import SIDE
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.options import Duration
from gpu_windows.vocabulary.rich_functions import FunctionContext, RuntimeContext, declaration
from gpu_windows.vocabulary.triggers.base import Row

#: Results of a function for a row or a timer: rows of the declared columns, or None.
Given: TypeAlias = Iterable[Mapping[str, object]] | None
#: A method that takes a row and the context.
Handler: TypeAlias = Callable[[Row, Any], Given]


class OpenContext(RuntimeContext, Protocol):
    """The context in which a function is opened, before its first row.

    Examples
    --------
    A function that looks its state up once, before the first row:

    >>> class Counter(gw.functions.KeyedProcessFunction):
    ...     state = {"rows": gw.functions.ValueStateDescriptor(pa.int64())}
    ...
    ...     def open(self, context: gw.typing.OpenContext):
    ...         self.rows = context.state("rows")
    ...
    ...     def process_element(self, row, context):
    ...         self.rows.update(self.rows.value(0) + 1)
    ...         return [{"n": self.rows.value()}]
    >>> users = gw.stream(pa.table({"user": ["ann", "bob", "ann"]})).key_by("user")
    >>> users.process(Counter(), output="n BIGINT").to_pylist()
    [{'user': 'ann', 'n': 1}, {'user': 'bob', 'n': 1}, {'user': 'ann', 'n': 2}]
    """

    def state(self, name: str) -> Any:
        """Return the state of this name; it is that of the current key, so it may be kept."""


class BaseContext(FunctionContext, Protocol):
    """The context of a row or timer, with or without a key. Times in ticks (microseconds)."""

    @property
    def timestamp(self) -> int | None:
        """The row's event time, or the time of the timer; None if rows have no event time."""

    @property
    def current_watermark(self) -> int:
        """The watermark; -2**63 before the first one."""

    @property
    def current_processing_time(self) -> int:
        """Processing time: on a stream that of the micro-batch."""


class KeyedContext(BaseContext, Protocol):
    """The context of a row or timer of a key.

    Examples
    --------
    A function that returns the time of every row:

    >>> class Times(gw.functions.KeyedProcessFunction):
    ...     def process_element(self, row, context: gw.typing.KeyedContext):
    ...         return [{"who": context.key["user"], "at": context.timestamp}]
    >>> clicks = gw.stream(pa.table({"user": ["ann", "bob"], "ts": [5, 9]}))
    >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> timed.key_by("user").process(Times(), output="who STRING, at BIGINT").to_pylist()
    [{'user': 'ann', 'who': 'ann', 'at': 5}, {'user': 'bob', 'who': 'bob', 'at': 9}]
    """

    @property
    def key(self) -> Row:
        """The current key: names of key columns to values."""

    def after(self, duration: Duration, time: int | None = None) -> int:
        """Return the time that is a duration after another one, for a timer.

        Parameters
        ----------
        duration : str or datetime.timedelta
            Such as ``"10 minutes"``.
        time : int, optional
            In microseconds, such as `current_processing_time`. Default: `timestamp`.

        Raises
        ------
        InvalidDurationError
            If it is no duration.
        InvalidFunctionError
            If there is no event time to count from.
        """

    def register_event_time_timer(self, time: int | datetime) -> None:
        """Set a timer: `on_timer` is called for this key once the watermark reaches ``time``.

        A time is in microseconds since 1970, or a datetime, in UTC unless it has a zone. The same
        time again is the same timer. A time that the watermark has passed already fires when it
        next advances, as in Flink.
        """

    def delete_event_time_timer(self, time: int | datetime) -> None:
        """Delete a timer of this key, if it is set."""

    def register_processing_time_timer(self, time: int | datetime) -> None:
        """Set a timer: `on_timer` is called for this key once processing time reaches ``time``.

        The function must declare `uses_processing_time`. On a bounded input such timers never fire;
        they are counted as ``processing_time_timers_left``.

        Raises
        ------
        InvalidFunctionError
            If the function does not declare that it uses processing time.
        """

    def delete_processing_time_timer(self, time: int | datetime) -> None:
        """Delete a timer of this key, if it is set."""

    def state(self, name: str) -> Any:
        """Return the state of this name; it is that of the current key."""


class TimerContext(KeyedContext, Protocol):
    """The context of a timer.

    Examples
    --------
    A function that sets a timer a second after every row:

    >>> class Later(gw.functions.KeyedProcessFunction):
    ...     def process_element(self, row, context):
    ...         context.register_event_time_timer(context.after("1 second"))
    ...
    ...     def on_timer(self, time, context: gw.typing.TimerContext):
    ...         return [{"at": time, "domain": context.time_domain}]
    >>> clicks = gw.stream(pa.table({"user": ["ann"], "ts": [5]}))
    >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> timed.key_by("user").process(Later(), output="at BIGINT, domain STRING").to_pylist()
    [{'user': 'ann', 'at': 1000005, 'domain': 'event_time'}]
    """

    @property
    def time_domain(self) -> Literal["event_time", "processing_time"]:
        """The kind of time of the timer."""


class Stateful(ProcessDeclarations):
    """The declarations of functions over single rows of keys, to be overridden."""

    @declaration
    def state(self) -> Mapping[str, StateDescriptor]:
        """State of each key, by name."""
        return {}

    def open(self, context: OpenContext) -> None:
        """Get ready, once in a Python worker, before its first row."""

    def on_timer(self, time: int, context: TimerContext) -> Given:
        """Handle a timer of the current key; return result rows."""
        del context
        raise NotImplementedError(f"{type(self).__name__} sets timers, and has no on_timer: {time}")


class KeyedProcessFunction(Stateful, ABC):
    """Processes every row of a key in order of arrival (Flink: KeyedProcessFunction).

    Returns rows of the declared columns: a list or an iterator of mappings (so it may be a
    generator), or None. It may have state, which it declares, and set timers.

    Examples
    --------
    >>> class Changes(gw.functions.KeyedProcessFunction):
    ...     state = {"last": gw.functions.ValueStateDescriptor(pa.float64())}
    ...
    ...     def process_element(self, row, context):
    ...         last = context.state("last")
    ...         if last.value() is not None:
    ...             yield {"change": row["price"] - last.value()}
    ...         last.update(row["price"])
    >>> prices = gw.stream(pa.table({"item": ["tea"] * 3, "price": [3.0, 4.5, 4.0]})).key_by("item")
    >>> prices.process(Changes(), ["price"], output="change DOUBLE")["change"].to_pylist()
    [1.5, -0.5]
    """

    @abstractmethod
    def process_element(self, row: Row, context: KeyedContext) -> Given:
        """Process a row of the current key: names of the selected columns to values."""


class KeyedCoProcessFunction(Stateful, ABC):
    """Processes the rows of two connected streams, which share state and timers.

    Flink: KeyedCoProcessFunction.

    Examples
    --------
    >>> class Balance(gw.functions.KeyedCoProcessFunction):
    ...     state = {"sum": gw.functions.ValueStateDescriptor(pa.int64())}
    ...
    ...     def process_element1(self, row, context):
    ...         return self.add(row["amount"], context)
    ...
    ...     def process_element2(self, row, context):
    ...         return self.add(-row["amount"], context)
    ...
    ...     def add(self, amount, context):
    ...         total = context.state("sum")
    ...         total.update(total.value(0) + amount)
    ...         return [{"balance": total.value()}]
    >>> paid_in = gw.stream(pa.table({"user": ["ann"], "amount": [9]})).key_by("user")
    >>> paid_out = gw.stream(pa.table({"user": ["ann"], "amount": [4]})).key_by("user")
    >>> both = paid_in.connect(paid_out)
    >>> both.process(Balance(), ["amount"], ["amount"], output="balance BIGINT").to_pylist()
    [{'user': 'ann', 'balance': 9}, {'user': 'ann', 'balance': 5}]
    """

    @abstractmethod
    def process_element1(self, row: Row, context: KeyedContext) -> Given:
        """Process a row of the left stream."""

    @abstractmethod
    def process_element2(self, row: Row, context: KeyedContext) -> Given:
        """Process a row of the right stream."""


@dataclass(frozen=True)
class UserProcess(ABC):
    """A user's function over rows of keys, as a value.

    Parameters
    ----------
    function : ProcessDeclarations
    output : pyarrow.Schema
        Columns of its results, after the keys.
    """

    function: ProcessDeclarations
    output: pa.Schema
    #: Whether rows have an event time.
    is_timed: bool = field(default=True, kw_only=True)

    #: The class that the function must be of.
    kind: ClassVar[type[ProcessDeclarations]]
    #: Whether it takes the rows of many keys at once, as arrays.
    in_batches: ClassVar[bool] = False
    #: A column of its results that is known to be never before the time of the row.
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
        """Raise `InvalidFunctionError` unless state is declared by the right types."""

    @property
    def name(self) -> str:
        """The name of the function for errors."""
        return type(self.function).__name__

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Columns of the rows that are read, each once."""

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """First and last event time of a row that it accepts: all."""
        return LONG_MIN, LONG_MAX

    @property
    def order_free(self) -> bool:
        """Whether its results do not depend on the order of arrival."""
        return False

    def describe(self) -> str:
        """Return a description for ``explain()``."""
        return f"{self.name}({', '.join(self.columns)})"


@dataclass(frozen=True)
class RowProcess(UserProcess):
    """A user's function over single rows, as a value. Parameters: see `UserProcess`."""

    function: Stateful

    def _check_state(self) -> None:
        check_states(self.function.state, self.name)

    @abstractmethod
    def rows(self, batch: pa.Table) -> Iterator[tuple[Handler, Row]]:
        """Yield the handler of each row of a batch, and the row."""


@dataclass(frozen=True)
class KeyedProcess(RowProcess):
    """A `KeyedProcessFunction`, and the columns that it is given.

    Parameters
    ----------
    function : KeyedProcessFunction
    output : pyarrow.Schema
    seen : tuple of str
        The columns that it is given.
    display_names : tuple of str
        The names by which it is given them.
    """

    function: KeyedProcessFunction
    seen: tuple[str, ...] = ()
    display_names: tuple[str, ...] = ()
    kind = KeyedProcessFunction

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is given."""
        return self.seen

    def rows(self, batch: pa.Table) -> Iterator[tuple[Handler, Row]]:
        """Yield the handler and each row."""
        names = dict(zip(self.display_names, self.seen, strict=True))
        return zip(repeat(self.function.process_element), dicts(batch, names), strict=False)


@dataclass(frozen=True)
class KeyedCoProcess(RowProcess):
    """A `KeyedCoProcessFunction`, and the columns of each side that it is given.

    Parameters
    ----------
    function : KeyedCoProcessFunction
    output : pyarrow.Schema
    left, right : tuple of (str, str)
        Names that the function is given, and columns of the united inputs.
    """

    function: KeyedCoProcessFunction
    left: tuple[tuple[str, str], ...] = ()
    right: tuple[tuple[str, str], ...] = ()
    kind = KeyedCoProcessFunction

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of the side, and those of both sides."""
        return (SIDE, *(column for _, column in (*self.left, *self.right)))

    def rows(self, batch: pa.Table) -> Iterator[tuple[Handler, Row]]:
        """Yield the handler of its side and each row."""
        is_left = batch.column(SIDE)
        lefts = dicts(batch.filter(is_left), dict(self.left))
        rights = dicts(batch.filter(pc.invert(is_left)), dict(self.right))
        one, two = self.function.process_element1, self.function.process_element2
        return ((one, next(lefts)) if left else (two, next(rights)) for left in is_left.to_pylist())


def dicts(batch: pa.Table, names: Mapping[str, str]) -> Iterator[Row]:
    """Return rows as dicts: names to Python values of columns."""
    if not names:
        return ({} for _ in range(batch.num_rows))  # each its own: functions may write into it
    columns = [python_values(batch.column(column), name) for name, column in names.items()]
    keys = tuple(names)
    return (dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True))
