"""Users' functions over a keyed stream and a broadcast one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Protocol

import pyarrow as pa

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.keyed_process import (
    BaseContext,
    Given,
    Handler,
    KeyedContext,
    RowProcess,
    Stateful,
    TimerContext,
    dicts,
)
from gpu_windows.functions.keyed_state import MapState, ReadOnlyBroadcastState
from gpu_windows.functions.state_descriptors import MapStateDescriptor, check_states
from gpu_windows.functions.two_inputs import COPY, SIDE
from gpu_windows.vocabulary.rich_functions import declaration
from gpu_windows.vocabulary.triggers.base import Row


class ReadOnlyContext(KeyedContext, Protocol):
    """The context of a row of the keyed stream.

    Examples
    --------
    >>> class Known(gw.functions.KeyedBroadcastProcessFunction):
    ...     broadcast_state = {"known": gw.functions.MapStateDescriptor(pa.string(), pa.bool_())}
    ...
    ...     def process_broadcast_element(self, row, context):
    ...         context.broadcast_state("known").put(row["user"], True)
    ...
    ...     def process_element(self, row, context: gw.typing.ReadOnlyContext):
    ...         return [{"known": context.broadcast_state("known").contains(context.key["user"])}]
    >>> users = gw.stream(pa.table({"user": ["ann", "bob"]})).key_by("user")
    >>> both = users.connect(gw.stream(pa.table({"user": ["bob"]})).broadcast())
    >>> both.process(Known(), broadcast=["user"], output="known BOOLEAN").to_pylist()
    [{'user': 'ann', 'known': False}, {'user': 'bob', 'known': True}]
    """

    def broadcast_state(self, name: str) -> ReadOnlyBroadcastState:
        """Return the broadcast state of this name, for reading.

        Raises
        ------
        InvalidFunctionError
            If it is not declared, or when it is written.
        """


class ReadOnlyTimerContext(ReadOnlyContext, TimerContext, Protocol):
    """The context of a timer.

    Examples
    --------
    >>> class Limits(gw.functions.KeyedBroadcastProcessFunction):
    ...     broadcast_state = {"limits": gw.functions.MapStateDescriptor(pa.string(), pa.int64())}
    ...
    ...     def process_broadcast_element(self, row, context):
    ...         context.broadcast_state("limits").put("clicks", row["limit"])
    ...
    ...     def process_element(self, row, context):
    ...         context.register_event_time_timer(context.timestamp + 1_000_000)
    ...
    ...     def on_timer(self, time, context: gw.typing.ReadOnlyTimerContext):
    ...         return [{"at": time, "limit": context.broadcast_state("limits").get("clicks")}]
    >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
    >>> clicks = gw.stream(pa.table({"user": ["ann"], "ts": [5]})).event_time("ts", in_order)
    >>> rules = gw.stream(pa.table({"limit": [100], "ts": [0]})).event_time("ts", in_order)
    >>> both = clicks.key_by("user").connect(rules.broadcast())
    >>> both.process(Limits(), broadcast=["limit"], output="at BIGINT, limit BIGINT").to_pylist()
    [{'user': 'ann', 'at': 1000005, 'limit': 100}]
    """


class BroadcastContext(BaseContext, Protocol):
    """The context of a row of the broadcast stream.

    It has no current key: keyed state and timers raise `InvalidFunctionError`, and key columns of
    side outputs are null.

    Examples
    --------
    >>> class Blocked(gw.functions.KeyedBroadcastProcessFunction):
    ...     broadcast_state = {"blocked": gw.functions.MapStateDescriptor(pa.string(), pa.bool_())}
    ...
    ...     def process_broadcast_element(self, row, context: gw.typing.BroadcastContext):
    ...         context.broadcast_state("blocked").put(row["user"], True)
    ...
    ...     def process_element(self, row, context):
    ...         return [
    ...             {"blocked": context.broadcast_state("blocked").get(context.key["user"], False)}
    ...         ]
    >>> users = gw.stream(pa.table({"user": ["ann", "bob"]})).key_by("user")
    >>> both = users.connect(gw.stream(pa.table({"user": ["bob"]})).broadcast())
    >>> both.process(Blocked(), broadcast=["user"], output="blocked BOOLEAN").to_pylist()
    [{'user': 'ann', 'blocked': False}, {'user': 'bob', 'blocked': True}]
    """

    def broadcast_state(self, name: str) -> MapState:
        """Return the broadcast state of this name."""


class KeyedBroadcastProcessFunction(Stateful, ABC):
    """Processes the rows of a keyed stream, and those of a small one that is broadcast.

    Flink: KeyedBroadcastProcessFunction.

    Each shard of the keys gets all rows of the broadcast stream, in the same order, and has
    broadcast state of its own. So `process_broadcast_element` must do the same everywhere: it may
    depend on its rows and on broadcast state only. Its results come once, with null keys.

    Examples
    --------
    >>> class Convert(gw.functions.KeyedBroadcastProcessFunction):
    ...     broadcast_state = {"rates": gw.functions.MapStateDescriptor(pa.string(), pa.float64())}
    ...
    ...     def process_broadcast_element(self, row, context):
    ...         context.broadcast_state("rates").put(row["currency"], row["rate"])
    ...
    ...     def process_element(self, row, context):
    ...         rate = context.broadcast_state("rates").get(row["currency"], 1.0)
    ...         return [{"francs": row["amount"] * rate}]
    >>> sales = gw.stream(pa.table({"shop": ["a"], "amount": [10.0], "currency": ["EUR"]}))
    >>> rates = gw.stream(pa.table({"currency": ["EUR"], "rate": [0.5]}))
    >>> both = sales.key_by("shop").connect(rates.broadcast())
    >>> both.process(
    ...     Convert(), ["amount", "currency"], ["currency", "rate"], output="francs DOUBLE"
    ... ).to_pylist()
    [{'shop': 'a', 'francs': 5.0}]
    """

    @declaration
    def broadcast_state(self) -> Mapping[str, MapStateDescriptor]:
        """Maps that are the same for all keys, by name; without a time to live."""
        return {}

    @abstractmethod
    def process_element(self, row: Row, context: ReadOnlyContext) -> Given:
        """Process a row of the keyed stream; broadcast state can be read only."""

    @abstractmethod
    def process_broadcast_element(self, row: Row, context: BroadcastContext) -> Given:
        """Process a row of the broadcast stream; broadcast state can be written."""


@dataclass(frozen=True)
class KeyedBroadcastProcess(RowProcess):
    """A `KeyedBroadcastProcessFunction`, and the columns of each side that it is given.

    Parameters
    ----------
    function : KeyedBroadcastProcessFunction
    output : pyarrow.Schema
    keyed, broadcast : tuple of (str, str)
        Names that the function is given, and columns of the united inputs.
    """

    function: KeyedBroadcastProcessFunction
    keyed: tuple[tuple[str, str], ...] = ()
    broadcast: tuple[tuple[str, str], ...] = ()
    kind = KeyedBroadcastProcessFunction
    broadcasts = True

    def __post_init__(self) -> None:
        super().__post_init__()
        what = "broadcast_state"
        descriptors: Mapping[str, Any] = self.broadcast_state
        check_states(descriptors, self.name, what)
        for name, descriptor in descriptors.items():
            if not isinstance(descriptor, MapStateDescriptor) or descriptor.ttl is not None:
                rule = f"{self.name}.{what} is of MapStateDescriptors without a time to live"
                raise InvalidFunctionError(rule, value=f"{name!r}: {descriptor!r}")

    @property
    def broadcast_state(self) -> Mapping[str, MapStateDescriptor]:
        """The maps that the function declares."""
        return self.function.broadcast_state

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the side and of copies, and those of both sides."""
        return (SIDE, COPY, *(column for _, column in (*self.keyed, *self.broadcast)))

    def rows(self, batch: pa.Table) -> Iterator[tuple[Handler, Row]]:
        """Yield the handler and each row of the keyed side."""
        rows = dicts(batch, dict(self.keyed))
        return zip(repeat(self.function.process_element), rows, strict=False)

    def broadcast_rows(self, batch: pa.Table) -> Iterator[tuple[Handler, Row]]:
        """Yield the handler and each row of the broadcast side."""
        rows = dicts(batch, dict(self.broadcast))
        return zip(repeat(self.function.process_broadcast_element), rows, strict=False)

    def describe(self) -> str:
        """Return a description for ``explain()``."""
        keyed, broadcast = (
            ", ".join(name for name, _ in side) for side in (self.keyed, self.broadcast)
        )
        state = ", ".join(self.broadcast_state) or "none"
        return f"{self.name}({keyed}), broadcast: {broadcast}; broadcast state: {state}"
