"""State of triggers and window functions: named values of declared Arrow types, by pane."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
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
        self.owner = owner
        self.types = dict(types)
        self.values: dict[Hashable, dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    @property
    def fields(self) -> dict[str, pa.DataType]:
        """Name to type of what `entry` returns: a list of the one value, or null."""
        return {_STATE + name: pa.list_(dtype) for name, dtype in self.types.items()}

    def entry(self, pane: Hashable) -> dict[str, Any]:
        """Return the state of a pane as values of `fields`."""
        values = self.values[pane]
        return {_STATE + n: [values[n]] if n in values else None for n in self.types}

    def load(self, pane: Hashable, entry: Mapping[str, Any]) -> None:
        """Load the state of a pane from an entry."""
        found = {name: entry[_STATE + name] for name in self.types}
        self.values[pane] = {name: each[0] for name, each in found.items() if each is not None}


class NamedState:
    """A `gpu_windows.functions.process.WindowState` of one pane."""

    def __init__(self, table: StateTable, pane: Hashable) -> None:
        self._table = table
        self._pane = pane

    def get(self, name: str, default: Any = None) -> Any:
        """Return a copy of the value of ``name``, which callers may change."""
        self._type_of(name)
        return copy_value(self._table.values.get(self._pane, {}).get(name, default))

    def put(self, name: str, value: Any) -> None:
        """Set a value of the declared type."""
        dtype = self._type_of(name)
        try:
            stored = as_array([value], dtype)[0].as_py()
        except CONVERSION_ERRORS as error:
            rule = f"{self._table.owner} declared its state {name!r} as {dtype}"
            raise InvalidFunctionError(rule, value=repr(value)) from error
        self._table.values.setdefault(self._pane, {})[name] = stored

    def remove(self, name: str) -> None:
        """Remove the value of ``name``."""
        self._type_of(name)
        values = self._table.values.get(self._pane, {})
        values.pop(name, None)
        if not values:
            self._table.values.pop(self._pane, None)

    def _type_of(self, name: str) -> pa.DataType:
        types = self._table.types
        if name not in types:
            raise declaration_error(self._table.owner, name, types)
        return types[name]


def declaration_error(
    owner: str, name: str, names: Iterable[str], what: str = "state"
) -> InvalidFunctionError:
    """Return the error for the name of a state that a function lacks in its declaration."""
    rule = f"{owner} must declare its {what}; it declared {', '.join(names) or 'none'}"
    return InvalidFunctionError(rule, value=repr(name))
