"""Single rows: their slices and statuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from gpu_windows.kernels.contract.arrays import DeviceBools, DeviceBytes, DeviceInts
from gpu_windows.rules import Grid, Units


class Limits(NamedTuple):
    """Which rows `Assign.assign_slices` accepts.

    Parameters
    ----------
    low, high : int
        Timestamps outside [low, high] are OUT_OF_RANGE.
    lateness : int
        Allowed lateness, in ticks.
    watermark : int
        The current one.
    """

    low: int
    high: int
    lateness: int
    watermark: int


class Seen(NamedTuple):
    """Summary of the rows of `Assign.assign_slices`.

    Parameters
    ----------
    rejected : int
        Rows whose status is not ACCEPTED.
    min_slice, max_slice : int
        Of the accepted rows; LONG_MAX and LONG_MIN if there are none.
    """

    rejected: int
    min_slice: int
    max_slice: int


class Assigned:
    """The slices of rows.

    Parameters
    ----------
    slices : int64[n]
        0 where the status is NULL or OUT_OF_RANGE.
    status : int8[n]
        ACCEPTED, LATE, GAP, OUT_OF_RANGE or NULL (`gpu_windows.rules`).
    summarize : callable
        Returns the summary of the rows; on a device it waits for that.
    marks : object
        The back end's own.
    """

    def __init__(
        self,
        slices: DeviceInts,
        status: DeviceBytes,
        summarize: Callable[[], Seen],
        marks: DeviceInts = None,
    ) -> None:
        self.slices, self.status, self.marks = slices, status, marks
        self._summarize = summarize
        self._seen: Seen | None = None

    @property
    def summary(self) -> Seen:
        """How many rows were rejected, and the reach of the others."""
        if self._seen is None:
            self._seen = self._summarize()
        return self._seen

    @summary.setter
    def summary(self, summary: Seen) -> None:
        """Set it where it is known by now, so that nobody waits for it again."""
        self._seen = summary

    @property
    def reach(self) -> tuple[int, int] | None:
        """The least and the greatest slice of accepted rows, if there are any."""
        _, low, high = self.summary
        return (low, high) if low <= high else None


class Assign(Protocol):
    """Assign rows to slices."""

    def count_units(self, ts: DeviceInts, units: Units) -> DeviceInts:
        """Return the unit that holds each timestamp; of one before or after all, one at that end.

        Parameters
        ----------
        ts : int64[n]
            Timestamps.
        units : Units
            With a table, in the host's memory.

        Returns
        -------
        int64[n]
            From ``units.first`` to ``units.last - 1``.
        """

    def assign_slices(
        self, ts: DeviceInts, valid: DeviceBools, grid: Grid, limits: Limits
    ) -> Assigned:
        """Return the slice and the status of every row, and what there was of them.

        Parameters
        ----------
        ts : int64[n]
            Timestamps.
        valid : bool[n] or bool[0]
            False for a null timestamp; empty if there is none.
        grid : Grid
            Of the slices.
        limits : Limits
        """
