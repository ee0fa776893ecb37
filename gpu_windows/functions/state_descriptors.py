"""State of a key, as process functions declare it: kinds, Arrow types, and time to live."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import types

from gpu_windows.aggregates.user import AggregateFunction, check_aggregate
from gpu_windows.errors import InvalidDurationError, InvalidFunctionError
from gpu_windows.functions.declarations import check_names
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

    Examples
    --------
    >>> hour = gw.functions.StateTtlConfig.of("1 hour")
    >>> last = gw.functions.ValueStateDescriptor(pa.float64(), ttl=hour)
    >>> hour.time_to_live, last.ttl == hour
    (3600000000, True)
    """

    time_to_live: int
    update_on_read: bool = False

    @classmethod
    def of(cls, time_to_live: Duration, *, update_on_read: bool = False) -> StateTtlConfig:
        """Let state live for a duration, such as ``"1 hour"``.

        Parameters
        ----------
        time_to_live : str or datetime.timedelta
            Positive.
        update_on_read : bool
            Whether reading also renews it.
        """
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

    Examples
    --------
    >>> rates = gw.functions.MapStateDescriptor(pa.string(), pa.float64())
    >>> isinstance(rates, gw.typing.StateDescriptor), rates.dtypes
    (True, (DataType(string), DataType(double)))
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
    """One value; see `ValueState`.

    Parameters
    ----------
    dtype : pyarrow.DataType
        Type of the value.

    Examples
    --------
    >>> last = gw.functions.ValueStateDescriptor(pa.timestamp("us", "UTC"))
    >>> last.dtypes
    (TimestampType(timestamp[us, tz=UTC]),)
    """

    dtype: pa.DataType

    @property
    def dtypes(self) -> tuple[pa.DataType, ...]:
        """The type of the value."""
        return (self.dtype,)


@dataclass(frozen=True)
class ListStateDescriptor(ValueStateDescriptor):
    """A list of values of a type; see `ListState`.

    Parameters
    ----------
    dtype : pyarrow.DataType
        Type of each element.

    Examples
    --------
    >>> pages = gw.functions.ListStateDescriptor(pa.string())
    >>> pages.dtypes
    (DataType(string),)
    """


@dataclass(frozen=True)
class MapStateDescriptor(StateDescriptor):
    """A map; see `MapState`. Its keys are of a type that is not nested.

    Parameters
    ----------
    key_type, value_type : pyarrow.DataType
        Keys must not be lists or structs.

    Examples
    --------
    >>> counts = gw.functions.MapStateDescriptor(pa.string(), pa.int64())
    >>> counts.dtypes
    (DataType(string), DataType(int64))
    """

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

    Examples
    --------
    >>> highest = gw.functions.ReducingStateDescriptor(max, pa.int64())
    >>> highest.dtypes
    (DataType(int64),)
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

    Parameters
    ----------
    function : AggregateFunction
        Combines the values that are added.

    Examples
    --------
    >>> class Sum(gw.functions.AggregateFunction):
    ...     accumulator = result = pa.int64()
    ...
    ...     def create_accumulator(self):
    ...         return 0
    ...
    ...     def add(self, row, accumulator):
    ...         return accumulator + row["amount"]
    ...
    ...     def get_result(self, accumulator):
    ...         return accumulator
    >>> class Totals(gw.functions.KeyedProcessFunction):
    ...     state = {"total": gw.functions.AggregatingStateDescriptor(Sum())}
    ...
    ...     def process_element(self, row, context):
    ...         total = context.state("total")
    ...         total.add(row)
    ...         return [{"total": total.get()}]
    >>> sales = gw.stream(pa.table({"shop": ["a", "a"], "amount": [1, 4]})).key_by("shop")
    >>> sales.process(Totals(), ["amount"], output="total BIGINT")["total"].to_pylist()
    [1, 5]
    """

    function: AggregateFunction

    @property
    def dtypes(self) -> tuple[pa.DataType, ...]:
        """The type of the accumulator."""
        return (self.function.accumulator,)

    def check(self, name: str, owner: str) -> None:
        """Refuse functions that are not an `AggregateFunction`, too."""
        subject = f"{owner} aggregates its state {name!r} by"
        check_aggregate(self.function, subject, "accumulator")
        super().check(name, owner)


def check_states(descriptors: Any, owner: str, what: str = "state") -> None:
    """Raise `InvalidFunctionError` unless names are mapped to valid state descriptors.

    ``what``: the attribute of the owner that declares it.
    """
    check_names(descriptors, StateDescriptor, f"{owner}.{what} maps names to state descriptors")
    for name, descriptor in descriptors.items():
        descriptor.check(name, owner)
