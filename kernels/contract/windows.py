"""The windows of slices, and what they combine to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

from gpu_windows.kernels.contract.arrays import (
    DeviceArray,
    DeviceBools,
    DeviceBytes,
    DeviceInts,
    DeviceLane,
    DeviceMoments,
)
from gpu_windows.rules import Grid


@dataclass(frozen=True)
class Ranges:
    """Ranges of entries, none of them empty.

    Parameters
    ----------
    first, last : int64[count]
        First and last entry of every range.
    halves : int8[count]
        Of which scans every range is made: PREFIX, SUFFIX or BOTH (`gpu_windows.rules`).
    blocks : object
        Which entries are in one block and of one key, as the back end has it.
    is_single : bool
        Whether every range is one entry.
    """

    #: The arrays that have an entry a range.
    _OF_EACH: ClassVar[tuple[str, ...]] = ("first", "last", "halves")

    first: DeviceInts
    last: DeviceInts
    halves: DeviceBytes
    blocks: Any
    is_single: bool

    @property
    def count(self) -> int:
        """Number of ranges."""
        return len(self.first)

    def take(
        self, order: DeviceInts, gather: Callable[[DeviceArray, DeviceInts], DeviceArray]
    ) -> Self:
        """Return the ranges in another order; some may be left out.

        Parameters
        ----------
        order : int64[n]
            Which ranges.
        gather : callable
            `take` of the back end.
        """
        moved = {name: gather(getattr(self, name), order) for name in self._OF_EACH}
        return replace(self, **moved)


@dataclass(frozen=True)
class Windows(Ranges):
    """The windows of some entries, by the last entry in each, then by number.

    Parameters
    ----------
    numbers : int64[count]
        Window numbers (`gpu_windows.rules`).
    grid : Grid
    """

    _OF_EACH: ClassVar[tuple[str, ...]] = (*Ranges._OF_EACH, "numbers")

    numbers: DeviceInts
    grid: Grid


class Combine(Protocol):
    """Combine slices to windows, or entries to ranges.

    Entries are the non-empty slices of every key, sorted by (key code, slice). A window is emitted
    for every key that has an entry in it. Aggregates over a window cost one combination whatever
    its length: blocks of ``span`` slices are scanned from both ends, and a window is the end of one
    block and the beginning of the next. Only associativity is needed. The order of combination is
    fixed by the entries: on the CPU by those of the key alone; on a device by all of a call, so the
    last bits of float sums may differ with the other keys that are in it.

    Source: van Herk, "A fast algorithm for local minimum and maximum filters" (1992);
    Gil and Werman, "Computing 2-D min, median, and max filters" (1993).
    """

    def total_windows(
        self, codes: DeviceInts, slices: DeviceInts, grid: Grid, low: int, high: int
    ) -> int:
        """Return how many windows `windows` would find."""

    def windows(
        self, codes: DeviceInts, slices: DeviceInts, grid: Grid, low: int, high: int
    ) -> Windows:
        """Find the windows that hold an entry.

        Parameters
        ----------
        codes, slices : int64[m]
            Entries, sorted by (code, slice), each pair once.
        grid : Grid
            Of slices and windows.
        low, high : int
            Numbers of the first window that is wanted and of the last.
        """

    def ranges(
        self,
        codes: DeviceInts,
        values: DeviceInts,
        first: DeviceInts,
        last: DeviceInts,
        length: int,
    ) -> Ranges:
        """Return ranges of entries, each of which is what some ``length`` consecutive values have.

        Parameters
        ----------
        codes, values : int64[m]
            Entries, sorted by (code, value); pairs may come more than once.
        first, last : int64[count]
            First and last entry of every range: all entries of a code with values of an interval,
            of which there is one at least.
        length : int
            Number of values in every such interval (where it is 1, values differ in a code); or
            LONG_MAX where each reaches beyond the first value of its code or the last one.
        """

    def last_slices(
        self, codes: DeviceInts, slices: DeviceInts, found: Windows, length: int
    ) -> tuple[DeviceInts, DeviceBools]:
        """Find what windows have in their last slices.

        Parameters
        ----------
        codes, slices : int64[m]
            The entries that ``found`` was found in.
        found : Windows
            Of a grid that is not cumulative.
        length : int
            How many slices; may be more than the windows of ``found`` are long.

        Returns
        -------
        first : int64[count]
            The first entry of the window's key in its last ``length`` slices; the last of the
            window, which is before them, where there is none.
        some : bool[count]
            Whether there is one.
        """

    def by_number(self, found: Windows) -> Windows:
        """Return windows in order of their number, those of a number in their order."""

    def bounds(self, found: Windows) -> tuple[DeviceInts, DeviceInts]:
        """Return start and end of every window, int64[count] each, in ticks."""

    def combine(self, how: int, found: Ranges, values: DeviceLane) -> DeviceLane:
        """Combine a partial over every range.

        Parameters
        ----------
        how : int
            ADD, MIN or MAX (`gpu_windows.rules`).
        found : Ranges
        values : int64[m] or float64[m]
            The partial of every entry.

        Returns
        -------
        int64[count] or float64[count]
            As ``values``. Integer sums wrap around 64 bits.
        """

    def moments(self, found: Ranges, values: DeviceMoments) -> DeviceMoments:
        """Combine the moments of the entries, [m] each, over every range, to [count] each."""

    def pick(self, found: Ranges, rank: DeviceInts) -> DeviceInts:
        """Return the entry of least rank of every range, the earlier of equals: int64[count].

        Parameters
        ----------
        found : Ranges
        rank : int64[m]
            LONG_MAX for an entry that has no candidate.
        """
