"""The global window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from gpu_windows.vocabulary.triggers import EndOfStreamTrigger, NeverTrigger, Trigger
from gpu_windows.vocabulary.windows.base import AssignerContext, GlobalWindow, Row, WindowAssigner


@dataclass(frozen=True)
class GlobalWindows(WindowAssigner):
    """All rows of a key are in one window without an end (Flink: GlobalWindows).

    Nothing is emitted without a trigger, such as the one that fires at the end of the input.

    Parameters
    ----------
    at_end : bool
        Whether the window fires once, at the end of the input.

    Examples
    --------
    >>> users = gw.stream(pa.table({"user": ["ann", "bob", "ann"]})).key_by("user")
    >>> whole = users.window(gw.GlobalWindows.create_with_end_of_stream_trigger())
    >>> whole.aggregate(n=gw.count()).select(["user", "n"]).to_pylist()
    [{'user': 'ann', 'n': 2}, {'user': 'bob', 'n': 1}]
    """

    at_end: bool = False
    #: No row is late for it, whatever its time.
    is_event_time = False
    has_bounds = False

    @classmethod
    def create(cls) -> Self:
        """Build the assigner; it needs a trigger to fire."""
        return cls()

    @classmethod
    def create_with_end_of_stream_trigger(cls) -> Self:
        """Build the assigner; the window fires once, at the end of the input."""
        return cls(at_end=True)

    def assign_windows(
        self, row: Row, timestamp: int, context: AssignerContext
    ) -> Sequence[GlobalWindow]:
        """Return the one window."""
        return [GlobalWindow()]

    def default_trigger(self) -> Trigger:
        """Return the trigger of a query without one."""
        return EndOfStreamTrigger() if self.at_end else NeverTrigger()

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return "global"
