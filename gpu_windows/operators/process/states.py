"""The state that a function sees: always that of the key at hand."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, KeysView, Mapping, ValuesView
from typing import Any

import pyarrow as pa
from pyarrow import types

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.checked_results import REFUSED, typed
from gpu_windows.functions.keyed_state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
)
from gpu_windows.operators.keyed.values import key_part
from gpu_windows.operators.process.kept import Elements, Entries, Kept, Now, Single
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.user_values import copy_value

#: Python classes whose values are kept as they are, by Arrow type.
_PLAIN: Mapping[pa.DataType, type] = {
    pa.int64(): int,
    pa.float64(): float,
    pa.string(): str,
    pa.large_string(): str,
    pa.binary(): bytes,
    pa.large_binary(): bytes,
    pa.bool_(): bool,
}


#: Returns a value as it is kept; raises `InvalidFunctionError` for one of another type.
Checked = Callable[[Any], Any]
#: Returns what a function is given of what is kept; None: itself, for nobody can change it.
Seen = Callable[[Any], Any] | None


def checked_as(dtype: pa.DataType, what: str) -> Checked:
    """Return what takes values of a declared type; others are refused, or become of it.

    Parameters
    ----------
    dtype : pyarrow.DataType
    what : str
        What is declared so, in words.
    """

    def converted(value: Any) -> Any:
        try:
            return typed([value], dtype)[0].as_py()
        except (*REFUSED, OverflowError) as error:
            rule = f"{what} was declared as {dtype}"
            raise InvalidFunctionError(rule, value=repr(value)) from error

    def whole(value: Any) -> Any:
        if value.__class__ is int and LONG_MIN <= value <= LONG_MAX:
            return value
        return converted(value)

    def plain(value: Any) -> Any:
        return value if value.__class__ is kind else converted(value)

    kind = _PLAIN.get(dtype)
    if kind is None:
        return converted
    return whole if kind is int else plain


def key_as(dtype: pa.DataType, what: str) -> Checked:
    """Return what takes keys of a map, as `checked_as` does; equal keys become one."""
    checked = checked_as(dtype, what)
    if not types.is_floating(dtype):
        return checked
    return lambda key: key_part(checked(key))


class Value:
    """A `gpu_windows.functions.keyed_state.ValueState`; of all states it must be the fastest."""

    __slots__ = ("_checked", "_kept", "_now")

    def __init__(self, kept: Single, now: Now, checked: Checked) -> None:
        self._kept, self._now, self._checked = kept, now, checked

    def value(self, default: Any = None) -> Any:
        """Return the value; ``default`` if there is none."""
        return self._kept.held.get(self._now.key, default)

    def update(self, value: Any) -> None:
        """Keep a value; None clears."""
        if value is None:
            self.clear()
        else:
            self._kept.held[self._now.key] = self._checked(value)

    def clear(self) -> None:
        """Forget it."""
        self._kept.held.pop(self._now.key, None)


class ExpiringValue(Value):
    """The same, of a value that expires."""

    def value(self, default: Any = None) -> Any:
        """Return the value; ``default`` if there is none, or if it is over."""
        found = self._kept.get(self._now.key)
        return default if found is None else found

    def update(self, value: Any) -> None:
        """Keep a value; None clears."""
        if value is None:
            self.clear()
        else:
            self._kept.put(self._now.key, self._checked(value))


class OwnValue(Value):
    """The same, of a value that a function could change: it is given a copy."""

    def value(self, default: Any = None) -> Any:
        """Return a copy of the value; ``default`` if there is none."""
        return copy_value(super().value(default))


class OwnExpiringValue(ExpiringValue):
    """The same, of a value that a function could change and that expires."""

    def value(self, default: Any = None) -> Any:
        """Return a copy of the value; ``default`` if there is none, or if it is over."""
        return copy_value(super().value(default))


class Elementwise:
    """A `gpu_windows.functions.keyed_state.ListState`; ``seen``: what it gives of an element."""

    def __init__(self, kept: Elements, now: Now, checked: Checked, seen: Seen) -> None:
        self._kept, self._now, self._checked, self._seen = kept, now, checked, seen

    def get(self) -> list[Any]:
        """Return the elements."""
        elements = self._kept.get(self._now.key)
        return elements if self._seen is None else [*map(self._seen, elements)]

    def add(self, value: Any) -> None:
        """Append an element."""
        self.add_all((value,))

    def add_all(self, values: Iterable[Any]) -> None:
        """Append elements."""
        self._kept.append(self._now.key, [self._element(value) for value in values])

    def update(self, values: Iterable[Any]) -> None:
        """Keep these elements instead."""
        elements = [self._element(value) for value in values]
        self.clear()
        self._kept.append(self._now.key, elements)

    def clear(self) -> None:
        """Forget them."""
        self._kept.held.pop(self._now.key, None)

    def _element(self, value: Any) -> Any:
        if value is None:
            raise InvalidFunctionError("a list in state has no None in it", value=value)
        return self._checked(value)


class Mapped:
    """A `gpu_windows.functions.keyed_state.MapState`.

    Parameters
    ----------
    kept : Entries
    now : Now
    dtypes : pair of pyarrow.DataType
        Of keys and of values.
    what : str
        Which state it is, in words.
    """

    def __init__(self, kept: Entries, now: Now, dtypes: tuple[pa.DataType, ...], what: str) -> None:
        self._kept, self._now, self._what = kept, now, what
        of_key, of_value = dtypes
        self._keys, self._values = key_as(of_key, what), checked_as(of_value, what)
        self._seen: Seen = copy_value if types.is_nested(of_value) else None

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of an entry."""
        value = self._kept.read(self._now.key, self._keys(key), default)
        return value if self._seen is None else self._seen(value)

    def put(self, key: Any, value: Any) -> None:
        """Set an entry."""
        if key is None:
            raise InvalidFunctionError(f"{self._what} is a map, which has no key None", value=key)
        checked = None if value is None else self._values(value)
        self._kept.put(self._now.key, self._keys(key), checked)

    def put_all(self, entries: Mapping[Any, Any]) -> None:
        """Set entries."""
        for key, value in entries.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        """Forget an entry."""
        self._kept.remove(self._now.key, self._keys(key))

    def contains(self, key: Any) -> bool:
        """Tell whether there is an entry."""
        return self._kept.read(self._now.key, self._keys(key), _ABSENT) is not _ABSENT

    def keys(self) -> KeysView[Any]:
        """Return the keys."""
        return self._shown().keys()

    def values(self) -> ValuesView[Any]:
        """Return the values."""
        return self._shown().values()

    def items(self) -> ItemsView[Any, Any]:
        """Return keys and values."""
        return self._shown().items()

    def _shown(self) -> dict[Any, Any]:
        found = dict(self._kept.get(self._now.key))
        return found if self._seen is None else self._seen(found)

    def is_empty(self) -> bool:
        """Tell whether there is no entry."""
        return not self._kept.get(self._now.key)

    def clear(self) -> None:
        """Forget all."""
        self._kept.held.pop(self._now.key, None)


_ABSENT = object()


class Appending:
    """A `gpu_windows.functions.keyed_state.AppendingState`.

    Parameters
    ----------
    kept : Single
        What was made of all values.
    now : Now
    checked : Checked
    add : callable
        What was made, or None, and a value, to what is made of them.
    result : callable
        What was made, to what the function sees.
    seen : callable, optional
        What it gives of that.
    """

    def __init__(
        self,
        kept: Single,
        now: Now,
        checked: Checked,
        add: Callable[[Any, Any], Any],
        result: Callable[[Any], Any],
        seen: Seen,
    ) -> None:
        self._kept, self._now, self._checked = kept, now, checked
        self._add, self._result, self._seen = add, result, seen

    def get(self) -> Any:
        """Return what was made of all values; None if none was added."""
        made = self._kept.get(self._now.key)
        if made is None:
            return None
        result = self._result(made)
        return result if self._seen is None else self._seen(result)

    def add(self, value: Any) -> None:
        """Add a value."""
        made = self._add(self._kept.get(self._now.key), value)
        self._kept.put(self._now.key, self._checked(made))

    def clear(self) -> None:
        """Forget it."""
        self._kept.held.pop(self._now.key, None)


#: States of one value, by whether it expires, and whether a function could change it.
_VALUES: Mapping[tuple[bool, bool], type[Value]] = {
    (False, False): Value,
    (True, False): ExpiringValue,
    (False, True): OwnValue,
    (True, True): OwnExpiringValue,
}


def state_of(descriptor: StateDescriptor, what: str, kept: Kept[Any], now: Now) -> Any:
    """Return what a function sees of state.

    Parameters
    ----------
    descriptor : StateDescriptor
    what : str
        Which state it is, in words.
    kept : Kept
        What `gpu_windows.operators.process.kept.kept_of` gave for it.
    now : Now
    """
    first = checked_as(descriptor.dtypes[0], what)
    seen = copy_value if types.is_nested(descriptor.dtypes[-1]) else None
    match descriptor, kept:
        case MapStateDescriptor(), Entries():
            return Mapped(kept, now, descriptor.dtypes, what)
        case ListStateDescriptor(), Elements():
            return Elementwise(kept, now, first, seen)
        case ReducingStateDescriptor(function=reduce), Single():

            def reduced(made: Any, value: Any) -> Any:
                return value if made is None else reduce(made, value)

            return Appending(kept, now, first, reduced, lambda made: made, seen)
        case AggregatingStateDescriptor(function=function), Single():

            def added(made: Any, value: Any) -> Any:
                begun = function.create_accumulator() if made is None else made
                return function.add(value, begun)

            is_nested = types.is_nested(descriptor.dtypes[0])

            def result(made: Any) -> Any:
                return function.get_result(copy_value(made) if is_nested else made)

            return Appending(kept, now, first, added, result, seen)
        case _, Single():
            return _VALUES[descriptor.ttl is not None, seen is not None](kept, now, first)
    raise AssertionError(f"unknown state: {descriptor}")
