"""State of a key, as process functions declare it: kinds, Arrow types, and time to live."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, ItemsView, Iterable, KeysView, Mapping, ValuesView
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from pyarrow import types

from gpu_windows.aggregates.user import AggregateFunction
from gpu_windows.errors import InvalidDurationError, InvalidFunctionError
from gpu_windows.vocabulary.options import Duration, show_ticks, ticks


@dataclass(frozen=True)
class StateTtlConfig:
    """How long state lives after it was last written (Flink: StateTtlConfig).

    The time is processing time: on a stream that of the micro-batch, which is the same when the
    micro-batch runs again. An expired value is never returned, and is removed from the state when
    processing time has passed. Elements of lists and entries of maps each have a time of their own.
    On a bounded input nothing expires.

    Parameters
    ----------
    time_to_live : int
        In ticks; `of` takes a duration.
    update_on_read : bool
        Whether reading restarts the time, too (Flink: OnReadAndWrite).

    Raises
    ------
    InvalidDurationError
        If it is not an integer of ticks above 0.
    """

    time_to_live: int
    update_on_read: bool = False

    @classmethod
    def of(cls, time_to_live: Duration, *, update_on_read: bool = False) -> StateTtlConfig:
        """Let state live for a duration, such as ``"1 hour"``."""
        return cls(ticks(time_to_live), update_on_read)

    def __post_init__(self) -> None:
        given: Any = self.time_to_live
        if not isinstance(given, int) or isinstance(given, bool):
            rule = "a time to live is in ticks: for a duration write StateTtlConfig.of('1 hour')"
            raise InvalidDurationError(rule, value=repr(given))
        if self.time_to_live <= 0:
            rule = "state must live for some time"
            raise InvalidDurationError(rule, value=show_ticks(self.time_to_live))


@dataclass(frozen=True, kw_only=True)
class StateDescriptor(ABC):
    """State of each key, under the name by which a function declares it.

    Parameters
    ----------
    ttl : StateTtlConfig, optional
        Its time to live; default: until it is cleared.
    """

    ttl: StateTtlConfig | None = None

    @property
    @abstractmethod
    def dtypes(self) -> tuple[pa.DataType, ...]:
        """Arrow types of the stored values."""

    def check(self, name: str, owner: str) -> None:
        """Raise `InvalidFunctionError` unless types are Arrow's, and ``ttl`` a `StateTtlConfig`."""
        for dtype in self.dtypes:
            if not isinstance(dtype, pa.DataType):
                rule = f"{owner} declares its state {name!r} by Arrow types, such as pa.int64()"
                raise InvalidFunctionError(rule, value=repr(dtype))
        if not (self.ttl is None or isinstance(self.ttl, StateTtlConfig)):
            rule = f"{owner} must give its state {name!r} a StateTtlConfig"
            raise InvalidFunctionError(rule, value=repr(self.ttl))


@dataclass(frozen=True)
class ValueStateDescriptor(StateDescriptor):
    """One value; see `ValueState`."""

    dtype: pa.DataType

    @property
    def dtypes(self) -> tuple[pa.DataType, ...]:
        """The type of the value."""
        return (self.dtype,)


@dataclass(frozen=True)
class ListStateDescriptor(ValueStateDescriptor):
    """A list of values of a type; see `ListState`."""


@dataclass(frozen=True)
class MapStateDescriptor(StateDescriptor):
    """A map; see `MapState`. Its keys are of a type that is not nested."""

    key_type: pa.DataType
    value_type: pa.DataType

    @property
    def dtypes(self) -> tuple[pa.DataType, ...]:
        """The types of keys and values."""
        return self.key_type, self.value_type

    def check(self, name: str, owner: str) -> None:
        """Refuse keys that are lists or structs, too: a Python dict cannot have them."""
        super().check(name, owner)
        if types.is_nested(self.key_type):
            rule = f"{owner} declares {name!r} with keys that are neither lists nor structs"
            raise InvalidFunctionError(rule, value=str(self.key_type))


@dataclass(frozen=True)
class ReducingStateDescriptor(StateDescriptor):
    """One value that a function combines all added values to, two at a time; see `AppendingState`.

    Parameters
    ----------
    function : callable
        ``function(earlier, later)``
    dtype : pyarrow.DataType
    """

    function: Callable[[Any, Any], Any]
    dtype: pa.DataType

    @property
    def dtypes(self) -> tuple[pa.DataType, ...]:
        """The type of the value."""
        return (self.dtype,)

    def check(self, name: str, owner: str) -> None:
        """Refuse functions that are not callable, too."""
        super().check(name, owner)
        if not callable(self.function):
            rule = f"{owner} reduces its state {name!r} by a function of two values"
            raise InvalidFunctionError(rule, value=repr(self.function))


@dataclass(frozen=True)
class AggregatingStateDescriptor(StateDescriptor):
    """The accumulator of an `AggregateFunction`; see `AppendingState`.

    Its ``add`` gets the values that are added to the state.
    """

    function: AggregateFunction

    @property
    def dtypes(self) -> tuple[pa.DataType, ...]:
        """The type of the accumulator."""
        return (self.function.accumulator,)

    def check(self, name: str, owner: str) -> None:
        """Refuse functions that are not an `AggregateFunction`, too."""
        if not isinstance(self.function, AggregateFunction):
            rule = f"{owner} aggregates its state {name!r} by an AggregateFunction"
            raise InvalidFunctionError(rule, value=repr(self.function))
        super().check(name, owner)


def check_states(descriptors: Any, owner: str, what: str = "state") -> None:
    """Raise `InvalidFunctionError` unless names are mapped to valid state descriptors.

    ``what``: the attribute of the owner that declares it.
    """
    if not isinstance(descriptors, Mapping):
        rule = f"{owner}.{what} maps names to state descriptors"
        raise InvalidFunctionError(rule, value=repr(descriptors))
    for name, descriptor in descriptors.items():
        if not isinstance(name, str) or not isinstance(descriptor, StateDescriptor):
            rule = f"{owner}.{what} maps names to state descriptors"
            raise InvalidFunctionError(rule, value=f"{name!r}: {descriptor!r}")
        descriptor.check(name, owner)


# ---- state as functions are given it: always that of the current key


class ValueState(Protocol):
    """One value of the current key (Flink: ValueState)."""

    def value(self, default: Any = None) -> Any:
        """Return the value, or ``default`` without one."""

    def update(self, value: Any) -> None:
        """Set the value; None clears it."""

    def clear(self) -> None:
        """Remove the value."""


class ListState(Protocol):
    """A list of the current key (Flink: ListState)."""

    def get(self) -> list[Any]:
        """Return the elements, in the order in which they were added, as a new list."""

    def add(self, value: Any) -> None:
        """Append an element; None is ignored."""

    def add_all(self, values: Iterable[Any]) -> None:
        """Append elements."""

    def update(self, values: Iterable[Any]) -> None:
        """Replace the elements."""

    def clear(self) -> None:
        """Remove all elements."""


class MapState(Protocol):
    """A map of the current key (Flink: MapState). All NaN are one key, and -0.0 is 0.0."""

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of an entry, or ``default`` without one."""

    def put(self, key: Any, value: Any) -> None:
        """Set an entry; its value may be None, its key may not."""

    def put_all(self, entries: Mapping[Any, Any]) -> None:
        """Set entries."""

    def remove(self, key: Any) -> None:
        """Remove an entry."""

    def contains(self, key: Any) -> bool:
        """Return whether there is an entry."""

    def keys(self) -> KeysView[Any]:
        """Return the keys, in the order in which they were first put."""

    def values(self) -> ValuesView[Any]:
        """Return the values."""

    def items(self) -> ItemsView[Any, Any]:
        """Return keys and values."""

    def is_empty(self) -> bool:
        """Return whether there is no entry."""

    def clear(self) -> None:
        """Remove all entries."""


class AppendingState(Protocol):
    """The aggregate of all values added for the current key.

    Flink: ReducingState, AggregatingState.
    """

    def get(self) -> Any:
        """Return the aggregate; None if no value was added."""

    def add(self, value: Any) -> None:
        """Add a value of a `ReducingStateDescriptor`, or a row of an aggregate."""

    def clear(self) -> None:
        """Remove the value."""
