"""Base class of the tables of a log."""

from __future__ import annotations

from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.runs import Run
from gpu_windows.operators.state.writable_table import WritableTable


class LogTable(WritableTable):
    """A table that reads its runs from the log that writes it."""

    def __init__(self, log: StateLog, name: str) -> None:
        self.log, self.name = log, name
        log.register(self)

    @property
    def runs(self) -> list[Run]:
        """Its live runs, oldest first."""
        return self.log.runs(self.name)
