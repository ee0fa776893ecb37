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


class Joins(Protocol):
    """Match the rows of two sides by key and time: all within bounds, or the nearest.

    A left row matches the right rows of its code with ``ts + lower <= right_ts <= ts + upper``,
    ``lower <= upper``, in ticks, where a sum beyond int64 is the end of int64. The matches of a
    left row are one range of right rows.

    Any contiguous part of the left rows may be matched by itself, in a thread of its own: the
    ranges of the parts, one after the other, are those of the whole.
    """

    def sorted_by_time(self, codes: DeviceInts, ts: DeviceInts) -> DeviceInts | None:
        """Return what sorts rows by (code, ts), equal ones in their order.

        Parameters
        ----------
        codes, ts : int64[n]
            In any order.

        Returns
        -------
        int64[n] or None
            None if they are sorted already.
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

    def has_match(self, first: DeviceInts, last: DeviceInts) -> DeviceBools:
        """Return which left rows match any right row: bool[n].

        Parameters
        ----------
        first, last : int64[n]
            Of `range_bounds`.
        """

    def mark_covered(self, first: DeviceInts, last: DeviceInts, count: int) -> DeviceBools:
        """Return which right rows match any left row.

        Parameters
        ----------
        first, last : int64[n]
            Of `range_bounds`: both ascend.
        count : int
            Number of right rows.

        Returns
        -------
        bool[count]
        """

    def pair_offsets(self, first: DeviceInts, last: DeviceInts) -> DeviceInts:
        """Return how many pairs are made of the left rows before each, and at the end of all.

        Parameters
        ----------
        first, last : int64[n]
            Of `range_bounds`.

        Returns
        -------
        int64[n + 1]
        """

    def expand_pairs(
        self, first: DeviceInts, offsets: DeviceInts, begin: int, end: int
    ) -> tuple[DeviceInts, DeviceInts]:
        """Return some of the pairs of left and right rows that match.

        Pairs are numbered by left row, those of a left row by right row.

        Parameters
        ----------
        first : int64[n]
            Of `range_bounds`.
        offsets : int64[n + 1]
            Of `pair_offsets`.
        begin, end : int
            Number of the first pair, and of the one after the last; ``end`` is at most their
            number.

        Returns
        -------
        left, right : int64[end - begin]
            Places of the rows.
        """

    def nearest(
        self, left: Side, right: Side, lower: int, upper: int, direction: int
    ) -> DeviceInts:
        """Return the right row nearest in time to every left row, of those that it matches.

        Parameters
        ----------
        left, right : Side
            Of n and of any number of rows.
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
            -1 where there is none.
        """
