"""Steps of a query, which know what comes after them: ``aggregate`` is asked of a window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

from gpu_windows.errors import MissingStepError


class Step:
    """A step of a query: who asks it for what only a later one has is told what comes between."""

    @staticmethod
    def _later() -> Mapping[str, type]:
        """Return what may be said next, and the step that it gives, in order."""
        return {}

    if not TYPE_CHECKING:  # for what it has, and no more, type checkers look at the class

        def __getattr__(self, name: str) -> NoReturn:
            """Raise `MissingStepError`, which is an `AttributeError`, with what is missing."""
            between = (said for said, step in self._later().items() if name in dir(step))
            said = None if name.startswith("_") else next(between, None)
            if said is None:
                object.__getattribute__(self, name)  # raises what it has raised
            raise MissingStepError(f"say .{said} before .{name}", value=type(self).__name__)
