"""The state of a shard in memory: for tests, and where there is no checkpoint."""

from __future__ import annotations

from uuid import uuid4

from gpu_windows.operators.state.files import MemoryFiles
from gpu_windows.operators.state.log import StateLog


class MemoryLog(StateLog):
    """The state of a shard in memory, where each operator begins from what the one before saved.

    Parameters
    ----------
    files : MemoryFiles, optional
        What it begins with.
    newest : str, optional
        See `StateLog`.
    """

    def __init__(self, files: MemoryFiles | None = None, newest: str | None = None) -> None:
        super().__init__(MemoryFiles() if files is None else files, newest)

    def reopen(self) -> StateLog:
        """Write what was saved, then return the log as it is now."""
        self.finish(uuid4().hex)
        self._begin()
        return self

    def copy(self) -> MemoryLog:
        """Return a log of its own with the same state: what was finished."""
        assert isinstance(self.files, MemoryFiles)
        return MemoryLog(MemoryFiles(dict(self.files.files)), self.newest)
