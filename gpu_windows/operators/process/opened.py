"""A process function that is open in this process."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.keyed_process import RowProcess
from gpu_windows.operators.open_functions import call_close, call_open
from gpu_windows.operators.process.state_cells import Now, StateCell, make_cell
from gpu_windows.operators.process.states import make_state
from gpu_windows.planning.kinds.process import ProcessQuery


class OpenedFunction:
    """A function that has been opened, and the state that it sees; an `OpenContext` for it.

    The handles show the state of the operator that calls the function: it sets `now` and `cells`.

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
    cells : dict of str to StateCell
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
        self.cells: dict[str, StateCell[Any]] = {
            name: make_cell(descriptor, self.now) for name, descriptor in declared.items()
        }
        self._states = {
            name: make_state(
                descriptor, f"the state {name!r} of {process.name}", self.cells[name], self.now
            )
            for name, descriptor in declared.items()
        }
        call_open(self.process.function, self, self.close)

    def close(self) -> None:
        """Close the function; handles that it still has show empty state."""
        for cell in self.cells.values():
            cell.by_key = {}
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

    def bind(self, contents: Mapping[str, dict[Any, Any]], time: int) -> None:
        """Bind the handles to the state of an operator, by name, at a processing time."""
        self.now.time = time
        for name, cell in self.cells.items():
            cell.by_key = contents[name]
