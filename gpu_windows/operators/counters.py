"""Counters of an operator: accepted and rejected rows, firings, kernel calls, user counters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields


@dataclass(frozen=True)
class Counters:
    """Counts of rows by outcome, of firings and of kernel calls.

    ``rows`` counts all rows seen; ``late``, ``gap``, ``null_timestamp``,
    ``out_of_range_timestamp``, ``future_timestamp`` and ``invalid_session_gap`` those in no window,
    each row in at most one of them; the rest were accepted.
    ``fired`` counts emitted windows. ``user`` are the counters of user code, sorted by name.

    The others depend on how the input was split into batches, and do not take part in equality.
    ``locally_aggregated`` counts rows that became partials before a shuffle. ``cpu_batches`` and
    ``cuda_batches`` count calls of kernels by back end, ``device_fallbacks`` those that went to the
    CPU because they, or three earlier ones of the task, did not fit device memory.
    """

    rows: int = 0
    late: int = 0
    gap: int = 0
    null_timestamp: int = 0
    out_of_range_timestamp: int = 0
    future_timestamp: int = 0
    invalid_session_gap: int = 0
    fired: int = 0
    locally_aggregated: int = field(default=0, compare=False)
    cpu_batches: int = field(default=0, compare=False)
    cuda_batches: int = field(default=0, compare=False)
    device_fallbacks: int = field(default=0, compare=False)
    user: tuple[tuple[str, int], ...] = ()

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of all counters but those of user code."""
        return tuple(f.name for f in fields(cls) if f.name != "user")

    def __add__(self, other: Counters) -> Counters:
        sums = {name: getattr(self, name) + getattr(other, name) for name in self.names()}
        user = Counter(dict(self.user))
        user.update(dict(other.user))
        return Counters(**sums, user=tuple(sorted(user.items())))
