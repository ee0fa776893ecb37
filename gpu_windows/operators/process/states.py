"""State handles of user functions; they access the state of the current key."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, KeysView, Mapping, ValuesView
from typing import Any

import pyarrow as pa
from pyarrow import types

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.checked_results import CONVERSION_ERRORS, as_array
from gpu_windows.functions.state_descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
)
from gpu_windows.operators.keyed.values import key_part
from gpu_windows.operators.process.state_cells import ListCell, MapCell, Now, StateCell, ValueCell
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.user_values import copy_value

#: Python classes whose values are stored unconverted, by Arrow type.
_PLAIN: Mapping[pa.DataType, type] = {
    pa.int64(): int,
    pa.float64(): float,
    pa.string(): str,
    pa.large_string(): str,
    pa.binary(): bytes,
    pa.large_binary(): bytes,
    pa.bool_(): bool,
}


#: Returns a value as it is stored; raises `InvalidFunctionError` for one of another type.
Checked = Callable[[Any], Any]
#: Returns the copy of a stored value that a function gets; None: itself, because it is immutable.
ToUser = Callable[[Any], Any] | None


def checked_as(dtype: pa.DataType, what: str) -> Checked:
    """Return a converter of values to a declared type; it rejects values of other types.

    Parameters
    ----------
    dtype : pyarrow.DataType
    what : str
        Human-readable name of the state.
    """

    def convert(value: Any) -> Any:
        try:
            return as_array([value], dtype)[0].as_py()
        except (*CONVERSION_ERRORS, OverflowError) as error:
            rule = f"{what} was declared as {dtype}"
            raise InvalidFunctionError(rule, value=repr(value)) from error

    def whole(value: Any) -> Any:
        if value.__class__ is int and LONG_MIN <= value <= LONG_MAX:
            return value
        return convert(value)

    def plain(value: Any) -> Any:
        return value if value.__class__ is kind else convert(value)

    kind = _PLAIN.get(dtype)
    if kind is None:
        return convert
    return whole if kind is int else plain


def key_as(dtype: pa.DataType, what: str) -> Checked:
    """Return a converter of keys of a map, as `checked_as` does; all NaN become one key."""
    checked = checked_as(dtype, what)
    if not types.is_floating(dtype):
        return checked
    return lambda key: key_part(checked(key))


class Handle:
    """The handle of a state: it accesses the contents of the current key."""

    __slots__ = ("_cell", "_checked", "_now")

    def __init__(self, cell: Any, now: Now, checked: Checked) -> None:
        self._cell, self._now, self._checked = cell, now, checked

    def clear(self) -> None:
        """Remove the contents."""
        self._cell.by_key.pop(self._now.key, None)


class Value(Handle):
    """A `gpu_windows.functions.keyed_state.ValueState`: frequent, so it must be fast."""

    __slots__ = ()

    def value(self, default: Any = None) -> Any:
        """Return the value; ``default`` if it is not set."""
        return self._cell.by_key.get(self._now.key, default)

    def update(self, value: Any) -> None:
        """Set the value; None clears."""
        if value is None:
            self.clear()
        else:
            self._cell.by_key[self._now.key] = self._checked(value)


class ConvertedValue(Value):
    """A `Value` that expires, or that is mutable, so the function gets a copy."""

    def __init__(self, cell: ValueCell, now: Now, checked: Checked, to_user: ToUser) -> None:
        super().__init__(cell, now, checked)
        self._to_user = to_user

    def value(self, default: Any = None) -> Any:
        """Return the value; ``default`` if it is not set or has expired."""
        found = self._cell.get(self._now.key)
        value = default if found is None else found
        return value if self._to_user is None else self._to_user(value)

    def update(self, value: Any) -> None:
        """Set the value; None clears."""
        if value is None:
            self.clear()
        else:
            self._cell.put(self._now.key, self._checked(value))


class Elementwise(Handle):
    """A `gpu_windows.functions.keyed_state.ListState`."""

    def __init__(self, cell: ListCell, now: Now, checked: Checked, to_user: ToUser) -> None:
        super().__init__(cell, now, checked)
        self._to_user = to_user

    def get(self) -> list[Any]:
        """Return the elements."""
        elements = self._cell.get(self._now.key)
        return elements if self._to_user is None else [*map(self._to_user, elements)]

    def add(self, value: Any) -> None:
        """Append an element."""
        self.add_all((value,))

    def add_all(self, values: Iterable[Any]) -> None:
        """Append elements."""
        self._cell.append(self._now.key, [self._element(value) for value in values])

    def update(self, values: Iterable[Any]) -> None:
        """Replace the elements."""
        elements = [self._element(value) for value in values]
        self.clear()
        self._cell.append(self._now.key, elements)

    def _element(self, value: Any) -> Any:
        if value is None:
            raise InvalidFunctionError("a list in state must not contain None", value=value)
        return self._checked(value)


class Mapped(Handle):
    """A `gpu_windows.functions.keyed_state.MapState`.

    Parameters
    ----------
    cell : MapCell
    now : Now
    dtypes : pair of pyarrow.DataType
        Of keys and of values.
    what : str
        Human-readable name of the state.
    """

    def __init__(self, cell: MapCell, now: Now, dtypes: tuple[pa.DataType, ...], what: str) -> None:
        of_key, of_value = dtypes
        super().__init__(cell, now, checked_as(of_value, what))
        self._what, self._keys = what, key_as(of_key, what)
        self._to_user: ToUser = copy_value if types.is_nested(of_value) else None

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of an entry."""
        value = self._cell.read(self._now.key, self._keys(key), default)
        return value if self._to_user is None else self._to_user(value)

    def put(self, key: Any, value: Any) -> None:
        """Set an entry."""
        if key is None:
            raise InvalidFunctionError(
                f"{self._what} is a map: its keys must not be None", value=key
            )
        checked = None if value is None else self._checked(value)
        self._cell.put(self._now.key, self._keys(key), checked)

    def put_all(self, entries: Mapping[Any, Any]) -> None:
        """Set entries."""
        for key, value in entries.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        """Remove an entry."""
        self._cell.remove(self._now.key, self._keys(key))

    def contains(self, key: Any) -> bool:
        """Return whether there is an entry."""
        return self._cell.read(self._now.key, self._keys(key), _ABSENT) is not _ABSENT

    def keys(self) -> KeysView[Any]:
        """Return the keys."""
        return self._copy_entries().keys()

    def values(self) -> ValuesView[Any]:
        """Return the values."""
        return self._copy_entries().values()

    def items(self) -> ItemsView[Any, Any]:
        """Return keys and values."""
        return self._copy_entries().items()

    def _copy_entries(self) -> dict[Any, Any]:
        found = dict(self._cell.get(self._now.key))
        return found if self._to_user is None else self._to_user(found)

    def is_empty(self) -> bool:
        """Return whether there are no entries."""
        return not self._cell.get(self._now.key)


_ABSENT = object()


class Appending(Handle):
    """A `gpu_windows.functions.keyed_state.AppendingState`.

    Parameters
    ----------
    cell : ValueCell
        The aggregate of all values.
    now : Now
    checked : Checked
    add : callable
        Aggregate or None, and a value, to the new aggregate.
    result : callable
        Aggregate to the result that the function sees.
    to_user : callable, optional
        Copies the result for the function, if it is mutable.
    """

    def __init__(
        self,
        cell: ValueCell,
        now: Now,
        checked: Checked,
        add: Callable[[Any, Any], Any],
        result: Callable[[Any], Any],
        to_user: ToUser,
    ) -> None:
        super().__init__(cell, now, checked)
        self._add, self._result, self._to_user = add, result, to_user

    def get(self) -> Any:
        """Return the result over all values; None if none was added."""
        made = self._cell.get(self._now.key)
        if made is None:
            return None
        result = self._result(made)
        return result if self._to_user is None else self._to_user(result)

    def add(self, value: Any) -> None:
        """Add a value."""
        made = self._add(self._cell.get(self._now.key), value)
        self._cell.put(self._now.key, self._checked(made))


def make_state(descriptor: StateDescriptor, what: str, cell: StateCell[Any], now: Now) -> Any:
    """Return the handle of a state for a function.

    Parameters
    ----------
    descriptor : StateDescriptor
    what : str
        Human-readable name of the state.
    cell : StateCell
        What `gpu_windows.operators.process.state_cells.make_cell` gave for it.
    now : Now
    """
    first = checked_as(descriptor.dtypes[0], what)
    to_user = copy_value if types.is_nested(descriptor.dtypes[-1]) else None
    match descriptor, cell:
        case MapStateDescriptor(), MapCell():
            return Mapped(cell, now, descriptor.dtypes, what)
        case ListStateDescriptor(), ListCell():
            return Elementwise(cell, now, first, to_user)
        case ReducingStateDescriptor(function=reduce), ValueCell():

            def reduce_next(made: Any, value: Any) -> Any:
                return value if made is None else reduce(made, value)

            return Appending(cell, now, first, reduce_next, lambda made: made, to_user)
        case AggregatingStateDescriptor(function=function), ValueCell():

            def add_next(made: Any, value: Any) -> Any:
                begun = function.create_accumulator() if made is None else made
                return function.add(value, begun)

            is_nested = types.is_nested(descriptor.dtypes[0])

            def result(made: Any) -> Any:
                return function.get_result(copy_value(made) if is_nested else made)

            return Appending(cell, now, first, add_next, result, to_user)
        case _, ValueCell():
            if descriptor.ttl is None and to_user is None:
                return Value(cell, now, first)
            return ConvertedValue(cell, now, first, to_user)
    raise AssertionError(f"unknown state: {descriptor}")
