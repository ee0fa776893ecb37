"""Groups of rows, by slice or by session, and what they are reduced to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from gpu_windows.kernels.contract.arrays import (
    DeviceBools,
    DeviceFloats,
    DeviceInts,
    DeviceLane,
    DeviceMoments,
    HostBools,
    HostInts,
)
from gpu_windows.kernels.contract.rows import Assigned


@dataclass(frozen=True)
class Groups:
    """The rows of a batch by group, sorted by (code, slice); the rest is the back end's own.

    Parameters
    ----------
    codes : int64[count]
        Key code of every group.
    slices : int64[count]
        Slice of every group; of sessions the start.
    rows : int64[count]
        Number of rows of every group.
    """

    codes: DeviceInts
    slices: DeviceInts
    rows: DeviceInts

    @property
    def count(self) -> int:
        """Number of groups."""
        return len(self.codes)


G = TypeVar("G", bound=Groups)
G_contra = TypeVar("G_contra", bound=Groups, contravariant=True)


class Grouping(Protocol[G]):
    """Group rows by (key code, slice), or by session."""

    def group(
        self,
        codes: DeviceInts,
        slices: DeviceInts,
        key_count: int,
        reach: tuple[int, int] | None = None,
    ) -> G:
        """Group rows by (code, slice).

        Parameters
        ----------
        codes : int64[n]
            Key codes, in [0, key_count).
        slices : int64[n]
            Slice numbers.
        key_count : int
            Number of key codes.
        reach : (int, int), optional
            No slice is below the first or above the second. Default: they are looked for.
        """

    def group_accepted(self, codes: DeviceInts, assigned: Assigned, key_count: int) -> G | None:
        """Group the accepted rows by (code, slice), before the host knows which these are.

        The groups are made of all rows: those that are rejected are in none, and come last in
        `order_of`.

        Parameters
        ----------
        codes : int64[n]
            Key codes of all rows, in [0, key_count).
        assigned : Assigned
            Of these rows.
        key_count : int
            Number of key codes.

        Returns
        -------
        Groups or None
            None where the host must take the accepted rows first, and `group` them.
        """

    def group_sessions(
        self, codes: DeviceInts, starts: DeviceInts, ends: DeviceInts, key_count: int
    ) -> G:
        """Group spans [start, end) by key and session; groups are sorted by (code, start).

        Parameters
        ----------
        codes : int64[n]
            Key codes, in [0, key_count).
        starts, ends : int64[n]
            The spans, in ticks. Those that intersect or touch are one session.
        key_count : int
            Number of key codes.

        Returns
        -------
        Groups
            ``slices`` are the starts of the sessions; reduce ``ends`` by MAX for their ends.
        """

    def runs(self, lengths: HostInts) -> G:
        """Return groups of consecutive rows.

        Parameters
        ----------
        lengths : int64[count], of the host
            Number of rows of every group, positive. CuPy repeats by numbers of the host only.
        """

    def order_of(self, groups: G) -> DeviceInts:
        """Return the rows by group, those of a group in their order: int64[n]."""


class Reduce(Protocol[G_contra]):
    """Segmented reduce: one primitive partial per group of rows.

    ``valid`` (bool[n], or `ALL`, which is empty) says which rows take part.
    """

    @property
    def ALL(self) -> HostBools:  # noqa: N802  # a constant of the module
        """Value of ``valid`` if all rows take part: bool[0], good for either back end."""

    def count(self, groups: G_contra, valid: DeviceBools) -> DeviceInts:
        """Count the valid rows of every group: int64[count]."""

    def reduce(
        self, how: int, groups: G_contra, values: DeviceLane, valid: DeviceBools
    ) -> DeviceLane:
        """Reduce the valid rows of every group.

        Parameters
        ----------
        how : int
            ADD, MIN or MAX (`gpu_windows.rules`).
        groups : Groups
        values : int64[n] or float64[n]
            An entry a row.
        valid : bool[n] or bool[0]
            Which values count; empty: all.

        Returns
        -------
        int64[count] or float64[count]
            As ``values``; the identity where a group has no valid row. Integer sums wrap around 64
            bits.
        """

    def exact_sum(
        self, groups: G_contra, values: DeviceInts, valid: DeviceBools
    ) -> tuple[DeviceInts, DeviceInts]:
        """Sum the valid values of every group, exactly, in two halves.

        Parameters
        ----------
        groups : Groups
        values : int64[n]
        valid : bool[n] or bool[0]
            Which values count; empty: all.

        Returns
        -------
        high, low : int64[count]
            The sums of ``value >> 32`` and of ``value & (2**32 - 1)``: 0 where no row is valid.
        """

    def moments(self, groups: G_contra, n: DeviceInts, *parts: DeviceFloats) -> DeviceMoments:
        """Combine the moments of the rows of every group, [n] each, to [count] each."""

    def moments_of(self, groups: G_contra, values: DeviceLane, valid: DeviceBools) -> DeviceMoments:
        """Return the moments of the valid values of every group: [n] each, to [count] each.

        Every int64 is taken as it is, also where it is no float64.

        Parameters
        ----------
        groups : Groups
        values : int64[n] or float64[n]
        valid : bool[n] or bool[0]
            Which values count; empty: all.
        """

    def pick(self, groups: G_contra, rank: DeviceInts, valid: DeviceBools) -> DeviceInts:
        """Return the valid row of least rank of every group, the earlier of equals.

        Parameters
        ----------
        groups : Groups
        rank : int64[n]
            The least one of a group is picked, the first of equals.
        valid : bool[n] or bool[0]
            Which rows may be picked; empty: all.

        Returns
        -------
        int64[count]
            -1 where no row is valid.
        """
