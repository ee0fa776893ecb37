"""State of triggers and window functions: named values of declared Arrow types, by pane."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.checked_results import CONVERSION_ERRORS, as_array
from gpu_windows.user_values import copy_value

#: Prefix of state names in tables, so that they do not clash with other columns.
_STATE = "state_"


class StateTable:
    """Named values of panes (or keys), each of a declared type.

    Parameters
    ----------
    owner : str
        Name of the trigger or function, for error messages.
    types : mapping of str to pyarrow.DataType
        Declared type of each value, by name.
    """

    def __init__(self, owner: str, types: Mapping[str, pa.DataType]) -> None:
        self._owner = owner
        self._types = dict(types)
        self._values: dict[Hashable, dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    @property
    def fields(self) -> dict[str, pa.DataType]:
        """Name to type of what `entry` returns: a list of the one value, or null."""
        return {_STATE + name: pa.list_(dtype) for name, dtype in self._types.items()}

    def entry(self, pane: Hashable) -> dict[str, Any]:
        """Return the state of a pane as values of `fields`."""
        values = self._values[pane]
        return {_STATE + n: [values[n]] if n in values else None for n in self._types}

    def load(self, pane: Hashable, entry: Mapping[str, Any]) -> None:
        """Load the state of a pane from an entry."""
        found = {name: entry[_STATE + name] for name in self._types}
        self._values[pane] = {name: each[0] for name, each in found.items() if each is not None}

    def of(self, pane: Hashable) -> NamedState:
        """Return the state of a pane."""
        return NamedState(self, pane)

    def get(self, pane: Hashable, name: str, default: Any) -> Any:
        """Return a copy of a value, which callers may change."""
        self._check(name)
        return copy_value(self._values.get(pane, {}).get(name, default))

    def put(self, pane: Hashable, name: str, value: Any) -> None:
        """Set a value."""
        self._check(name)
        try:
            stored = as_array([value], self._types[name])[0].as_py()
        except CONVERSION_ERRORS as error:
            rule = f"{self._owner} declared its state {name!r} as {self._types[name]}"
            raise InvalidFunctionError(rule, value=repr(value)) from error
        self._values.setdefault(pane, {})[name] = stored

    def remove(self, pane: Hashable, name: str) -> None:
        """Remove a value."""
        self._check(name)
        values = self._values.get(pane, {})
        values.pop(name, None)
        if not values:
            self._values.pop(pane, None)

    def _check(self, name: str) -> None:
        if name not in self._types:
            names = ", ".join(self._types) or "none"
            raise InvalidFunctionError(
                f"{self._owner} must declare its state; it declared {names}", value=repr(name)
            )


class NamedState:
    """A `gpu_windows.functions.process.WindowState` of one pane."""

    def __init__(self, table: StateTable, pane: Hashable) -> None:
        self._table = table
        self._pane = pane

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of ``name``."""
        return self._table.get(self._pane, name, default)

    def put(self, name: str, value: Any) -> None:
        """Set a value of the declared type."""
        self._table.put(self._pane, name, value)

    def remove(self, name: str) -> None:
        """Remove the value of ``name``."""
        self._table.remove(self._pane, name)
