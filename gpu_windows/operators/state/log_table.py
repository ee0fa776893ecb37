"""A table of a log."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpu_windows.operators.state.runs import Block, Run

if TYPE_CHECKING:
    from gpu_windows.operators.state.log import StateLog


class LogTable(ABC):
    """A table of a log: it has runs, and rows that are in none yet.

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
        """Its live runs, from the oldest on."""
        return self.log.runs(self.name)

    @property
    @abstractmethod
    def new_bytes(self) -> int:
        """Bytes in memory of what is in no run yet; 0 if there is nothing."""

    @abstractmethod
    def merge(self, runs: Sequence[Run], *, with_new: bool, are_oldest: bool) -> Iterator[Block]:
        """Yield what some runs come to, neighbours in age, as blocks of one run.

        Parameters
        ----------
        runs : sequence of Run
            From the oldest on.
        with_new : bool
            Whether what is in no run yet follows them.
        are_oldest : bool
            Whether there is nothing older.
        """

    @property
    def must_be_rewritten(self) -> bool:
        """Whether all its runs are to become one, so that what was taken of them goes."""
        return False

    @abstractmethod
    def note_written(self) -> None:
        """Forget what was in no run yet: it is in one now."""

    def before_finish(self) -> None:  # noqa: B027 - most have nothing to do
        """Keep numbers of the table, before the log is written."""

    def count_written(self, runs: Sequence[Run]) -> None:  # noqa: B027 - most do not change
        """Keep numbers of the runs that are live once the log is written."""
