"""A process function that is open in this process."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from gpu_windows.functions.keyed_process import RowProcess
from gpu_windows.operators.keyed.state import declaration_error
from gpu_windows.operators.open_functions import call_close, call_open
from gpu_windows.operators.process.state_cells import Now, StateCell, make_cell
from gpu_windows.operators.process.states import make_state
from gpu_windows.planning.kinds.process import ProcessQuery


class OpenedFunction:
    """An opened function, the handles of its state, and its `OpenContext`.

    The operator that calls the function binds the handles to its own state; see `bind`.

    Parameters
    ----------
    query : ProcessQuery
        Of a `RowProcess`.

    Attributes
    ----------
    process : RowProcess
        With its own copy of the query's function, as each Flink job has.
    keys : tuple of str
    now : Now
    cells : dict of str to StateCell
        By the names of states, in alphabetical order.
    """

    def __init__(self, query: ProcessQuery) -> None:
        process = query.process
        assert isinstance(process, RowProcess)
        # open may set attributes of the function, which queries must not share
        self.process = replace(process, function=copy(process.function))
        self.keys = query.display_keys
        self.now = Now()
        descriptors = dict(sorted(process.function.state.items()))
        self.cells: dict[str, StateCell[Any]] = {
            name: make_cell(descriptor, self.now) for name, descriptor in descriptors.items()
        }
        self._states = {
            name: make_state(
                descriptor, f"the state {name!r} of {process.name}", self.cells[name], self.now
            )
            for name, descriptor in descriptors.items()
        }
        call_open(self.process.function, self, self.close)

    def close(self) -> None:
        """Close the function; its handles then read empty state."""
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
            raise declaration_error(self.process.name, name, self._states)
        return found

    def bind(self, contents: Mapping[str, dict[Any, Any]], time: int) -> None:
        """Bind the handles to the state of an operator, by name, at a processing time."""
        self.now.time = time
        for name, cell in self.cells.items():
            cell.by_key = contents[name]
