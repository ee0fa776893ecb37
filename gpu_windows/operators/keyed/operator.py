"""Operators of state and timers of keys that user code sets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from gpu_windows.operators import open_functions
from gpu_windows.operators.base import Emission, StatefulOperator, Timers
from gpu_windows.operators.keyed.backend import KeyedBackend
from gpu_windows.operators.keyed.stored import StoredKeyedState
from gpu_windows.operators.keyed.timers import Domain
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.plan import Plan


class KeyedOperator(StatefulOperator[StoredKeyedState]):
    """An operator that keeps the keys of a call in memory, and all others in a log.

    Parameters
    ----------
    plan : Plan
    keyed : KeyedBackend
        Empty.
    """

    def __init__(self, plan: Plan, keyed: KeyedBackend) -> None:
        self._plan, self._keyed = plan, keyed

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Fire the timers up to ``watermark``, then those that they set. To be drained."""
        if watermark <= self._keyed.watermark:
            return
        if self._stored is not None:
            self._stored.load_due(watermark)
        self._keyed.watermark = watermark
        yield from self._fire_timers("event_time", watermark)

    def advance_processing_time(self, time: int) -> Iterator[Emission]:
        """Set processing time; fire its timers up to ``time``, then those that they set."""
        self._keyed.processing_time = time
        if self._stored is not None:
            self._stored.load_due(time, in_processing_time=True)
        yield from self._fire_timers("processing_time", time)

    @abstractmethod
    def _fire_timers(self, domain: Domain, until: int) -> Iterator[Emission]:
        """Fire the timers of a time domain up to ``until``."""

    def state_size(self) -> dict[str, int]:
        """Return the number of entries of each kind, in memory and in the log."""
        in_memory = self._keyed.size()
        stored = {} if self._stored is None else self._stored.table.not_loaded
        return {name: count + stored.get(name, 0) for name, count in in_memory.items()}

    def close(self) -> None:
        """Close the user functions of the query."""
        open_functions.close(self._plan.query.token)

    # ---- in a log

    def _restore_state(self, log: StateLog) -> StoredKeyedState:
        """Open the stored keys; they are read when their rows or timers come."""
        return StoredKeyedState(self._keyed, log)

    def _save(self, stored: StoredKeyedState) -> None:
        """Write the keys that were loaded."""
        stored.save()

    def _next_timers(self, stored: StoredKeyedState) -> Timers:
        """Return the times of the earliest timers."""
        return stored.table.next_timers()
