"""Codes of keys, which the host gives to distinct ones in the order in which they first appear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gpu_windows.kernels.contract.arrays import (
    ArrowArray,
    DeviceBools,
    DeviceFloats,
    DeviceInts,
    HostInts,
)


class Keys(Protocol):
    """Find the distinct values of a batch: so few that a dictionary of the host gives them codes.

    They come in the order of their first appearance. A dictionary that takes them in this order
    gives them the codes that it would give them if it took every row.
    """

    def codes(
        self, values: DeviceInts, valid: DeviceBools, encode: Callable[[HostInts], HostInts]
    ) -> DeviceInts:
        """Return the code of each value, which the host gives it: int64[n].

        Parameters
        ----------
        values : int64[n]
        valid : bool[n] or bool[0]
            Which values count; empty: all.
        encode : callable
            Called once, with the values that count, each once, in the order of their first
            appearance: int64[k] of the host. Returns their codes, and as the last one that of
            values that do not count: int64[k + 1].
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

    def texts(
        self, column: ArrowArray, encode: Callable[[ArrowArray], HostInts]
    ) -> DeviceInts | None:
        """Return the code of each string, which the host gives it: int64[n].

        Parameters
        ----------
        column : pyarrow.Array
            Of strings or binary, at least one, in the host's memory.
        encode : callable
            Called once, with each string once, in the order of their first appearance, null being
            one of them: a pyarrow.Array of k, of the column's type. Returns their codes, int64[k].

        Returns
        -------
        int64[n] or None
            None where the back end has nothing for strings: they are the host's then.
        """

    def number(self, codes: DeviceInts, counts: DeviceInts) -> tuple[DeviceInts, DeviceInts]:
        """Number the rows of every key in their order.

        Parameters
        ----------
        codes : int64[n]
            Key codes, in [0, keys).
        counts : int64[keys]
            How many rows of every key came before.

        Returns
        -------
        numbers : int64[n]
            From ``counts[code]`` on.
        counts : int64[keys]
            With these rows.
        """
