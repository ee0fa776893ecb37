"""Rows that are in no window: which, why, and how they are given back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.operators.counters import Counters
from gpu_windows.planning.query import REASON

#: Why a row is given back, by its status (`gpu_windows.rules`); null where it is not.
_GIVEN_BACK = {s: reason for s, reason in rules.REASONS.items() if s != rules.GAP}
_REASONS = [_GIVEN_BACK.get(s) for s in range(max(rules.REASONS) + 1)]


@dataclass(frozen=True)
class Rejected:
    """Rows that are in no window.

    Parameters
    ----------
    seen : int
        Number of rows of which these are some.
    places : int64[m]
        Their places among them, in order.
    status : int8[m]
        Why, in terms of `gpu_windows.rules`.
    """

    seen: int
    places: NDArray[np.int64]
    status: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.places)

    @classmethod
    def none(cls, seen: int) -> Self:
        """Return that all rows were accepted."""
        return cls(seen, np.empty(0, np.int64), np.empty(0, np.int8))

    @classmethod
    def of(cls, status: NDArray[np.int8]) -> Self:
        """Pick out the rows that were not accepted."""
        if not status.any():  # a pass over bytes is cheaper than one that looks for places
            return cls.none(len(status))
        places = np.flatnonzero(status)
        return cls(len(status), places, status[places])

    @property
    def others(self) -> NDArray[np.bool_]:
        """Which rows are none of these: bool[seen]."""
        others = np.ones(self.seen, np.bool_)
        others[self.places] = False
        return others

    @classmethod
    def together(cls, parts: Sequence[Self]) -> Self:
        """Put what was found in consecutive rows together."""
        begins = np.cumsum([0, *(part.seen for part in parts)])
        places = [part.places + begin for part, begin in zip(parts, begins, strict=False)]
        statuses = [part.status for part in parts]
        return cls(
            int(begins[-1]),
            np.concatenate([np.empty(0, np.int64), *places]),
            np.concatenate([np.empty(0, np.int8), *statuses]),
        )

    def counts(self) -> Counters:
        """Count all rows seen, and these by what became of them."""
        counts = np.bincount(self.status, minlength=len(_REASONS)).tolist()
        by_reason = {reason: counts[status] for status, reason in rules.REASONS.items()}
        return Counters(rows=self.seen, **by_reason)


def given_back(batch: pa.Table, rejected: Rejected) -> pa.Table:
    """Return the rows that are given back, and the reason; those in gaps are not."""
    reasons = pa.array(_REASONS, pa.string()).take(pa.array(rejected.status)).drop_null()
    late = batch.slice(0, 0)
    if len(reasons):  # a filter keeps the batch's chunks, which together may be too large for one
        some = np.zeros(len(batch), np.bool_)
        some[rejected.places[rejected.status != rules.GAP]] = True
        late = batch.filter(pa.array(some))
    return late.append_column(REASON, reasons)
