"""Distinct keys, in the order in which they first appear, and which of them every row has."""

from __future__ import annotations

from typing import Protocol

from gpu_windows.kernels.contract.arrays import (
    ArrowArray,
    DeviceBools,
    DeviceFloats,
    DeviceInts,
)


class Keys(Protocol):
    """Find the distinct values of a batch: so few that a dictionary of the host gives them codes.

    They come in the order of their first appearance. A dictionary that takes them in this order
    gives them the codes that it would give them if it took every row.
    """

    def distinct(self, values: DeviceInts, valid: DeviceBools) -> tuple[DeviceInts, DeviceInts]:
        """Return each value once, and which of these every row has.

        Parameters
        ----------
        values : int64[n]
        valid : bool[n] or bool[0]
            Which values count; empty: all.

        Returns
        -------
        values : int64[k]
            The valid ones, in the order of their first appearance.
        places : int64[n]
            The place of each row's value among them; k where it is not valid.
        """

    def bits(self, values: DeviceFloats) -> DeviceInts:
        """Return the bits of floats, with one NaN and one zero: int64[n].

        Parameters
        ----------
        values : float64[n]
        """

    def pairs(self, left: DeviceInts, right: DeviceInts, count: int) -> DeviceInts:
        """Return a number for each pair of codes: ``left * count + right``, int64[n].

        Parameters
        ----------
        left, right : int64[n]
            Codes; the right ones are in [0, count).
        count : int
        """

    def texts(self, column: ArrowArray) -> tuple[ArrowArray, DeviceInts] | None:
        """Return each string once, and which of these every row has.

        Parameters
        ----------
        column : pyarrow.Array
            Of strings or binary, at least one, in the host's memory.

        Returns
        -------
        (pyarrow.Array of k, int64[n]) or None
            The values, of the column's type, in the order of their first appearance, null being one
            of them; the place of each row's value among them. None where the back end has nothing
            for strings: they are the host's then.
        """
