"""Small state of triggers and process functions: values of declared Arrow types, by pane."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.checked_results import CONVERSION_ERRORS, as_array
from gpu_windows.user_values import copy_value

#: Keeps the names that users chose apart from others in a table.
_STATE = "state_"


class StateTable:
    """Named values of panes (or keys), each of a declared type.

    Parameters
    ----------
    owner : str
        Who declared them, for error messages.
    declared : mapping of str to pyarrow.DataType
        Name to type of what is kept.
    """

    def __init__(self, owner: str, declared: Mapping[str, pa.DataType]) -> None:
        self._owner = owner
        self._declared = dict(declared)
        self._values: dict[Hashable, dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    @property
    def fields(self) -> dict[str, pa.DataType]:
        """Name to type of what `entry` returns: a list of the value, null where there is none."""
        return {_STATE + name: pa.list_(dtype) for name, dtype in self._declared.items()}

    def entry(self, pane: Hashable) -> dict[str, Any]:
        """Return the state of a pane as values of `fields`."""
        values = self._values[pane]
        return {_STATE + n: [values[n]] if n in values else None for n in self._declared}

    def load(self, pane: Hashable, entry: Mapping[str, Any]) -> None:
        """Take the state of a pane from an entry."""
        found = {name: entry[_STATE + name] for name in self._declared}
        self._values[pane] = {name: kept[0] for name, kept in found.items() if kept is not None}

    def of(self, pane: Hashable) -> NamedState:
        """Return the state of a pane."""
        return NamedState(self, pane)

    def get(self, pane: Hashable, name: str, default: Any) -> Any:
        """Return a value; who gets it may change it, and what is kept stays."""
        self._check(name)
        return copy_value(self._values.get(pane, {}).get(name, default))

    def put(self, pane: Hashable, name: str, value: Any) -> None:
        """Keep a value."""
        self._check(name)
        try:
            kept = as_array([value], self._declared[name])[0].as_py()
        except CONVERSION_ERRORS as error:
            rule = f"{self._owner} declared its state {name!r} as {self._declared[name]}"
            raise InvalidFunctionError(rule, value=repr(value)) from error
        self._values.setdefault(pane, {})[name] = kept

    def remove(self, pane: Hashable, name: str) -> None:
        """Forget a value."""
        self._check(name)
        values = self._values.get(pane, {})
        values.pop(name, None)
        if not values:
            self._values.pop(pane, None)

    def _check(self, name: str) -> None:
        if name not in self._declared:
            names = ", ".join(self._declared) or "none"
            raise InvalidFunctionError(
                f"{self._owner} must declare its state; it declared {names}", value=repr(name)
            )


class NamedState:
    """A `gpu_windows.functions.process.WindowState` of one pane."""

    def __init__(self, table: StateTable, pane: Hashable) -> None:
        self._table = table
        self._pane = pane

    def get(self, name: str, default: Any = None) -> Any:
        """Return what was kept under ``name``."""
        return self._table.get(self._pane, name, default)

    def put(self, name: str, value: Any) -> None:
        """Keep a value of the declared type."""
        self._table.put(self._pane, name, value)

    def remove(self, name: str) -> None:
        """Forget what was kept under ``name``."""
        self._table.remove(self._pane, name)
