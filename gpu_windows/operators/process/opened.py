"""Functions of users in this process: each is opened once, whatever number of operators call it."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.keyed_process import RowProcess, UserProcess
from gpu_windows.operators.process.kept import Kept, Now, kept_of
from gpu_windows.operators.process.states import state_of

#: Functions that are open at most; the one that was asked for the longest ago is closed.
_MOST = 64


class OpenedFunction:
    """A function that has been opened, and the state that it sees.

    The state shows what the operator that calls the function holds: it sets `now` and the `kept`.

    Parameters
    ----------
    process : RowProcess

    Attributes
    ----------
    process : RowProcess
    now : Now
    kept : dict of str to Kept
        By the names of states, in alphabetical order.
    """

    def __init__(self, process: RowProcess) -> None:
        self.process = process
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
        process.function.open(self)

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


class Opened(Protocol):
    """A function that has been opened."""

    @property
    def process(self) -> UserProcess:
        """Whose function it is."""


Process = TypeVar("Process", bound=UserProcess)
Function = TypeVar("Function", bound=Opened)

_OPEN: dict[str, Any] = {}


def opened(process: Process, open_: Callable[[Process], Function]) -> Function:
    """Return a function, opened by ``open_`` in this process if it was not yet."""
    found: Function | None = _OPEN.pop(process.token, None)
    if found is None:
        found = open_(process)
        while len(_OPEN) >= _MOST:
            close(next(iter(_OPEN)))
    _OPEN[process.token] = found
    return found


def close(token: str) -> None:
    """Close a function, if it is open."""
    found = _OPEN.pop(token, None)
    if found is not None:
        found.process.function.close()


@atexit.register
def _close_all() -> None:
    for token in [*_OPEN]:
        close(token)
