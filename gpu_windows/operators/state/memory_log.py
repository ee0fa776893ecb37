"""The state of a shard in memory: for tests, and where there is no checkpoint."""

from __future__ import annotations

from uuid import uuid4

from gpu_windows.operators.state.files import MemoryFiles
from gpu_windows.operators.state.log import StateLog


class MemoryLog(StateLog):
    """The state of a shard in memory; an operator resumes from what the previous one saved.

    Parameters
    ----------
    files : MemoryFiles, optional
        The existing files.
    newest : str, optional
        See `StateLog`.
    """

    def __init__(self, files: MemoryFiles | None = None, newest: str | None = None) -> None:
        super().__init__(MemoryFiles() if files is None else files, newest)

    def reopen(self) -> StateLog:
        """Write all changes, then return the log."""
        self.finish(uuid4().hex)
        self._begin()
        return self

    def copy(self) -> MemoryLog:
        """Return a separate log with the same written state."""
        assert isinstance(self.files, MemoryFiles)
        return MemoryLog(MemoryFiles(dict(self.files.files)), self.newest)
