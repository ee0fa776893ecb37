"""Triggers: when a window fires. Descriptions only; their state lives with the operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from gpu_windows.errors import InvalidTriggerError


class Trigger:
    """Base of the triggers."""

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        raise NotImplementedError


@dataclass(frozen=True)
class EventTimeTrigger(Trigger):
    """Fires when the watermark passes the window's end, and at each late row after that.

    The default of event-time windows (Flink: EventTimeTrigger).
    """

    @classmethod
    def create(cls) -> Self:
        """Build the trigger."""
        return cls()

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return "at the window's end"


@dataclass(frozen=True)
class CountTrigger(Trigger):
    """Fires at each ``count``-th row of a window, never at its end (Flink: CountTrigger)."""

    count: int

    @classmethod
    def of(cls, count: int) -> Self:
        """Fire at each ``count``-th row."""
        return cls(count)

    def __post_init__(self) -> None:
        if self.count <= 0:
            raise InvalidTriggerError(
                "the count of a CountTrigger must be positive", value=self.count
            )

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return f"every {self.count} rows"


@dataclass(frozen=True)
class PurgingTrigger(Trigger):
    """Empties the window whenever the inner trigger fires (Flink: PurgingTrigger)."""

    inner: Trigger

    @classmethod
    def of(cls, inner: Trigger) -> Self:
        """Purge at each firing of ``inner``."""
        return cls(inner)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return f"{self.inner.describe()}, purging"
