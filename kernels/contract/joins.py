"""Joins of two sides by key and time."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from gpu_windows.kernels.contract.arrays import DeviceBools, DeviceInts


class Side(NamedTuple):
    """The rows of a side of a join, sorted by (code, ts).

    Parameters
    ----------
    codes : int64[n]
        Key codes, from 0 on.
    ts : int64[n]
        Timestamps.
    """

    codes: DeviceInts
    ts: DeviceInts


class SortedRows(NamedTuple):
    """The rows of a side, sorted by (code, ts), with the numbers that they had before.

    Parameters
    ----------
    numbers : int32[n]
        Row numbers before they were sorted; equal rows in their order.
    codes, ts : int64[n]
        Sorted.
    were_sorted : bool
        Whether ``numbers`` ascend.
    """

    numbers: DeviceInts
    codes: DeviceInts
    ts: DeviceInts
    were_sorted: bool

    @property
    def side(self) -> Side:
        """Codes and times."""
        return Side(self.codes, self.ts)


class Joins(Protocol):
    """Match the rows of two sides by key and time: all within bounds, or the nearest.

    A left row matches the right rows of its code with ``ts + lower <= right_ts <= ts + upper``,
    ``lower <= upper``, in ticks, where a sum beyond int64 is the end of int64. The matches of a
    left row are one range of right rows.

    Any contiguous part of the left rows may be matched by itself, in a thread of its own: the
    ranges of the parts, one after the other, are those of the whole.
    """

    def sort(self, codes: DeviceInts, ts: DeviceInts) -> SortedRows:
        """Sort less than 2**31 rows by (code, ts), equal ones in their order.

        Parameters
        ----------
        codes, ts : int64[n]
            In any order. Codes may be negative here.
        """

    def range_bounds(
        self, left: Side, right: Side, lower: int, upper: int
    ) -> tuple[DeviceInts, DeviceInts]:
        """Return the range of right rows that every left row matches.

        Returns
        -------
        first, last : int64[n]
            The first right row and the one after the last; equal if there is none. Both ascend.
        """

    def has_match(self, numbers: DeviceInts, first: DeviceInts, last: DeviceInts) -> DeviceBools:
        """Return which left rows match any right row, by number: bool[n].

        Parameters
        ----------
        numbers : int32[n]
            Numbers of the left rows.
        first, last : int64[n]
            Of `range_bounds`.
        """

    def mark_covered(self, numbers: DeviceInts, first: DeviceInts, last: DeviceInts) -> DeviceBools:
        """Return which right rows match any left row, by number.

        Parameters
        ----------
        numbers : int32[m]
            Numbers of the right rows.
        first, last : int64[n]
            Of `range_bounds`: both ascend.

        Returns
        -------
        bool[m]
        """

    def pair_offsets(self, first: DeviceInts, last: DeviceInts) -> tuple[DeviceInts, int]:
        """Return how many pairs are made of the left rows before each, and of all.

        Parameters
        ----------
        first, last : int64[n]
            Of `range_bounds`.

        Returns
        -------
        offsets : int64[n + 1]
        count : int
            The last of them.
        """

    def expand_pairs(
        self,
        left: DeviceInts,
        right: DeviceInts,
        first: DeviceInts,
        offsets: DeviceInts,
        begin: int,
        end: int,
    ) -> tuple[DeviceInts, DeviceInts]:
        """Return some of the pairs of left and right rows that match.

        Pairs are in order of their left rows, those of a left row in order of their right rows, as
        these are sorted.

        Parameters
        ----------
        left, right : int32[n], int32[m]
            Numbers of the rows of each side.
        first : int64[n]
            Of `range_bounds`.
        offsets : int64[n + 1]
            Of `pair_offsets`.
        begin, end : int
            The first pair, and the one after the last; ``end`` is at most their count.

        Returns
        -------
        left, right : int32[end - begin]
            Numbers of the rows of each pair.
        """

    def nearest(
        self, left: SortedRows, right: SortedRows, lower: int, upper: int, direction: int
    ) -> DeviceInts:
        """Return the right row nearest in time to every left row, of those that it matches.

        Parameters
        ----------
        left, right : SortedRows
            n and any number of rows.
        lower, upper : int
            Ticks.
        direction : int
            BEFORE: of the rows up to the left row's time the latest, of those of equal time the
            last. AFTER: of the rows from the left row's time on the earliest, of those of equal
            time the first. EITHER: the nearer of the two, BEFORE if equally near
            (`gpu_windows.rules`).

        Returns
        -------
        int64[n]
            Numbers of right rows, by number of the left row; -1 where there is none.
        """
