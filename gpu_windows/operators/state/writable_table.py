"""Interface of the tables that a log writes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from gpu_windows.operators.state.runs import Block, Run


class WritableTable(ABC):
    """A table that a log writes: runs, and unflushed rows that are in none yet.

    Attributes
    ----------
    name : str
    """

    name: str

    @property
    @abstractmethod
    def runs(self) -> list[Run]:
        """Its live runs, oldest first."""

    @property
    @abstractmethod
    def new_bytes(self) -> int:
        """Bytes in memory of unflushed rows; 0 if there are none."""

    @abstractmethod
    def merge(self, runs: Sequence[Run], *, with_new: bool, are_oldest: bool) -> Iterator[Block]:
        """Compact runs that are neighbours in age; yield the blocks of the resulting run.

        Parameters
        ----------
        runs : sequence of Run
            Oldest first.
        with_new : bool
            Whether unflushed rows follow them.
        are_oldest : bool
            Whether no run is older.
        """

    @property
    def needs_full_compaction(self) -> bool:
        """Whether all runs are to become one, which drops consumed and superseded rows."""
        return False

    @abstractmethod
    def note_written(self) -> None:
        """Drop the unflushed rows, which are in a run now."""

    def before_finish(self) -> None:  # noqa: B027 - most have nothing to do
        """Save numbers of the table, before the log is written."""

    def count_written(self, runs: Sequence[Run]) -> None:  # noqa: B027 - most do not change
        """Save numbers of the runs that are live after the log is written."""
