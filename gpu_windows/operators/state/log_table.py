"""Base class of the tables of a log."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpu_windows.operators.state.runs import Block, Run

if TYPE_CHECKING:
    from gpu_windows.operators.state.log import StateLog


class LogTable(ABC):
    """A table of a log: runs, and unflushed rows that are in none yet.

    Parameters
    ----------
    log : StateLog
    name : str
    """

    def __init__(self, log: StateLog, name: str) -> None:
        self.log, self.name = log, name
        log.register(self)

    @property
    def runs(self) -> list[Run]:
        """Its live runs, oldest first."""
        return self.log.runs(self.name)

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
