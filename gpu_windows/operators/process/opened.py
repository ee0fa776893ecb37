"""A process function that is open in this process."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.keyed_process import RowProcess
from gpu_windows.operators.opened import call_close, call_open
from gpu_windows.operators.process.kept import Kept, Now, kept_of
from gpu_windows.operators.process.states import state_of
from gpu_windows.query.process import ProcessQuery


class OpenedFunction:
    """A function that has been opened, and the state that it sees; an `OpenContext` for it.

    The state shows what the operator that calls the function holds: it sets `now` and the `kept`.

    Parameters
    ----------
    query : ProcessQuery
        Of a `RowProcess`.

    Attributes
    ----------
    process : RowProcess
        With a function of its own: a copy of the query's, as each job has one in Flink.
    keys : tuple of str
    now : Now
    kept : dict of str to Kept
        By the names of states, in alphabetical order.
    """

    def __init__(self, query: ProcessQuery) -> None:
        process = query.process
        assert isinstance(process, RowProcess)
        # open sets attributes of it: those of a query are not those of another one
        self.process = replace(process, function=copy(process.function))
        self.keys = query.shown_keys
        self.now = Now()
        declared = dict(sorted(process.function.state.items()))
        self.kept: dict[str, Kept[Any]] = {
            name: kept_of(descriptor, self.now) for name, descriptor in declared.items()
        }
        self._states = {
            name: state_of(
                descriptor, f"the state {name!r} of {process.name}", self.kept[name], self.now
            )
            for name, descriptor in declared.items()
        }
        call_open(self.process.function, self, self.close)

    def close(self) -> None:
        """Close the function; what it kept of its state shows nothing any more."""
        for kept in self.kept.values():
            kept.held = {}
        call_close(self.process.function)

    def state(self, name: str) -> Any:
        """Return the state of this name.

        Raises
        ------
        InvalidFunctionError
            If it was not declared.
        """
        found = self._states.get(name)
        if found is None:
            names = ", ".join(self._states) or "none"
            rule = f"{self.process.name} must declare its state; it declared {names}"
            raise InvalidFunctionError(rule, value=repr(name))
        return found

    def show(self, held: Mapping[str, dict[Any, Any]], time: int) -> None:
        """Have the state show what an operator holds, by name, at a processing time."""
        self.now.time = time
        for name, kept in self.kept.items():
            kept.held = held[name]
