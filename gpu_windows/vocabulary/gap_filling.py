"""Gap filling: results for windows in which a key has no rows. Times in ticks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

import pyarrow as pa

from gpu_windows.vocabulary.options import show_ticks

#: Upper bound of the windows that one gap of a key may have.
MAX_GAP_WINDOWS = 10_000_000


@dataclass(frozen=True)
class GivenKeys:
    """Keys that have results from a start on, whether they have rows or not.

    Parameters
    ----------
    table : pyarrow.Table
        The keys, one column for each key column, without duplicates.
    start : int
        The first window filled starts here or later.
    end : int, optional
        The last window filled ends here or earlier; None: it has no end.
    """

    table: pa.Table
    start: int
    end: int | None = None

    @property
    def facts(self) -> Mapping[str, object]:
        """Facts that state depends on: a digest of the keys in any order, and the bounds."""
        rows = zip(*(column.to_pylist() for column in self.table.columns), strict=True)
        digest = sha256("\n".join(sorted(map(repr, rows))).encode()).hexdigest()
        return {"keys": [len(self.table), digest], "start": self.start, "end": self.end}


@dataclass(frozen=True)
class GapFilling:
    """How windows without rows are filled.

    Parameters
    ----------
    carry_forward, interpolate : tuple of str
        Results by how they are filled; others have the aggregate of no rows.
    until : int, optional
        How long after the last window with rows a key is filled; None: up to its next one.
    given : GivenKeys, optional
        The keys to fill; None: all that have rows.
    """

    carry_forward: tuple[str, ...] = ()
    interpolate: tuple[str, ...] = ()
    until: int | None = None
    given: GivenKeys | None = None

    @property
    def carried_results(self) -> tuple[str, ...]:
        """The results of the last window with rows that filled ones depend on."""
        return (*self.carry_forward, *self.interpolate)

    @property
    def waits(self) -> bool:
        """Whether a gap is filled when the next row is known, or `until` has passed."""
        return bool(self.interpolate)

    def delay(self, slide: int) -> int:
        """Return how long after its end a window may be filled, in ticks."""
        return self.until + slide if self.waits and self.until is not None else 0

    @property
    def has_no_end(self) -> bool:
        """Whether given keys are filled for ever."""
        return self.given is not None and self.given.end is None

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        if self.given is not None:
            keys = f"of {len(self.given.table)} given keys"
        elif self.until is None:
            keys = "between the rows of a key"
        else:
            keys = f"until {show_ticks(self.until)} after the rows of a key"
        parts = [f"windows without rows, {keys}"]
        if self.carry_forward:
            parts.append(f"{', '.join(self.carry_forward)} carried forward")
        if self.interpolate:
            parts.append(f"{', '.join(self.interpolate)} interpolated")
        return "; ".join(parts)

    @property
    def facts(self) -> Mapping[str, object]:
        """Facts that state depends on."""
        return {
            "carry_forward": [*self.carry_forward],
            "interpolate": [*self.interpolate],
            "until": None if self.until is None else show_ticks(self.until),
            **({} if self.given is None else self.given.facts),
        }
