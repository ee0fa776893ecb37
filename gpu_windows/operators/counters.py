"""Counters of an operator; and the rows that are in no window: which, why, their table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.planning.own_columns import REASON

#: Reason of a row in the late output, by its status (`gpu_windows.rules`); null: not emitted there.
_EMITTED = {s: reason for s, reason in rules.REASONS.items() if s != rules.GAP}
_REASONS = [_EMITTED.get(s) for s in range(max(rules.REASONS) + 1)]


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


@dataclass(frozen=True)
class Rejected:
    """Rows that are in no window.

    Parameters
    ----------
    seen : int
        Number of rows that were checked.
    positions : int64[m]
        Indices of the rejected ones, ascending.
    status : int8[m]
        Why, in terms of `gpu_windows.rules`.
    """

    seen: int
    positions: NDArray[np.int64]
    status: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.positions)

    @classmethod
    def none(cls, seen: int) -> Self:
        """Return no rejected rows among ``seen``."""
        return cls(seen, np.empty(0, np.int64), np.empty(0, np.int8))

    @classmethod
    def of(cls, status: NDArray[np.int8]) -> Self:
        """Return the rows whose status is not ACCEPTED."""
        if not status.any():  # a pass over bytes is cheaper than one that collects positions
            return cls.none(len(status))
        positions = np.flatnonzero(status)
        return cls(len(status), positions, status[positions])

    @property
    def accepted_mask(self) -> NDArray[np.bool_]:
        """Mask of the accepted rows: bool[seen]."""
        accepted = np.ones(self.seen, np.bool_)
        accepted[self.positions] = False
        return accepted

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Return the rejected rows of consecutive parts of a batch as those of the whole."""
        begins = np.cumsum([0, *(part.seen for part in parts)])
        positions = [part.positions + begin for part, begin in zip(parts, begins, strict=False)]
        statuses = [part.status for part in parts]
        return cls(
            int(begins[-1]),
            np.concatenate([np.empty(0, np.int64), *positions]),
            np.concatenate([np.empty(0, np.int8), *statuses]),
        )

    def counts(self) -> Counters:
        """Count all rows that were checked, and the rejected ones by reason."""
        counts = np.bincount(self.status, minlength=len(_REASONS)).tolist()
        by_reason = {reason: counts[status] for status, reason in rules.REASONS.items()}
        return Counters(rows=self.seen, **by_reason)


def rejected_rows(batch: pa.Table, rejected: Rejected) -> pa.Table:
    """Return the rejected rows with their `REASON`, without those in gaps."""
    reasons = pa.array(_REASONS, pa.string()).take(pa.array(rejected.status)).drop_null()
    late = batch.slice(0, 0)
    if len(reasons):  # a filter keeps the batch's chunks, which together may be too large for one
        some = np.zeros(len(batch), np.bool_)
        some[rejected.positions[rejected.status != rules.GAP]] = True
        late = batch.filter(pa.array(some))
    return late.append_column(REASON, reasons)
