"""Spark's part of a checkpoint: it is read and copied, files are deleted, none is written."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.checkpoints.source_logs import (
    FileLog,
    find_file_logs,
    find_log_offsets,
    read_sources,
)
from gpu_windows.errors import CheckpointError
from gpu_windows.spark_glue.streams.spark_offsets import COMMITS, FOLDER, list_numbered

#: Folders of Spark's: logs of its sources, and state of its own steps.
_SOURCES, _STATE = "sources", "state"


@dataclass(frozen=True)
class SparkPart:
    """Spark's part of a checkpoint.

    Parameters
    ----------
    files : CheckpointFiles
        Of the whole checkpoint.
    """

    files: CheckpointFiles

    def check_can_resume(self, commit: StateCommit) -> None:
        """Raise `CheckpointError` unless Spark can resume after the micro-batch of a commit.

        It needs its records of that micro-batch and of the previous one.
        """
        number = commit.number
        for needed in range(max(number - 1, 0), number + 1):
            name = f"{FOLDER}/{needed}"
            if needed not in self._records:
                rule = (
                    "Spark must still have what it noted of the commit's micro-batch, and of the "
                    f"one before: {name} is not there"
                )
                raise CheckpointError(rule, value=f"commit {commit.sequence}")
        if number >= 0 and hashlib.sha256(self._records[number]).hexdigest() != commit.digest:
            rule = f"the commit must be of the micro-batch that {FOLDER}/{number} is of"
            raise CheckpointError(rule, value=f"commit {commit.sequence}")

    def can_resume(self, commit: StateCommit) -> bool:
        """Whether Spark can resume after the micro-batch of a commit."""
        try:
            self.check_has_no_state()
            self.check_can_resume(commit)
        except CheckpointError:
            return False
        return True

    def check_has_no_state(self) -> None:
        """Raise `CheckpointError` if earlier steps of Spark keep state."""
        if self.files.below(_STATE).entries():
            rule = (
                "only a query without stateful steps of Spark (`dropDuplicates`) can be rolled "
                "back or copied"
            )
            raise CheckpointError(rule, value=self.files.root)

    def check_inputs(self, number: int) -> None:
        """Raise `CheckpointError` if input files read after a micro-batch no longer exist.

        Only files on disks of this machine are checked.
        """
        for place, last in self._log_offsets(number).items():
            self._file_logs[place].check_inputs(last)

    def later_files(self, number: int) -> list[str]:
        """Return the files to delete so that Spark resumes after a micro-batch, in order.

        Offsets come before the log entries to which they refer; the records of finished
        micro-batches come last.

        Raises
        ------
        CheckpointError
            If the log of a source lacks an entry that Spark needs.
        """
        names = self._later(FOLDER, number)
        for place, last in self._log_offsets(number).items():
            names += self._file_logs[place].split(last)[1]
        return names + self._later(COMMITS, number)

    def files_until(self, number: int) -> list[str]:
        """Return the files that Spark needs to resume after a micro-batch, without ``metadata``.

        Raises
        ------
        CheckpointError
            If the log of a source lacks an entry that Spark needs.
        """
        offsets = self._log_offsets(number)
        names = []
        for place in range(self._sources):
            if place in offsets:
                names += self._file_logs[place].split(offsets[place])[0]
            else:
                names += self.files.walk(f"{_SOURCES}/{place}")
        for log in (COMMITS, FOLDER):
            numbered = list_numbered(self.files, log)
            names += [name for n in numbered if n <= number for name in numbered[n]]
        return [name for name in names if not name.endswith(".crc")]

    def _later(self, log: str, number: int) -> list[str]:
        """Return the names of files after a number, the newest first."""
        names = list_numbered(self.files, log)
        return [name for each in reversed(names) if each > number for name in names[each]]

    def _log_offsets(self, number: int) -> dict[int, int]:
        """Return the last entry of each file source's log that was read up to a micro-batch.

        Logs are left as they are if offsets cannot be assigned to them: then Spark reads all files
        of later entries in one micro-batch.
        """
        return find_log_offsets(self._records, number, self._file_logs) or {}

    @cached_property
    def _records(self) -> dict[int, bytes]:
        every = list_numbered(self.files, FOLDER)
        return {number: self.files.read(names[-1]) for number, names in every.items()}

    @cached_property
    def _sources(self) -> int:
        texts = (read_sources(record) for record in self._records.values())
        return max((len(each) for each in texts if each is not None), default=0)

    @cached_property
    def _file_logs(self) -> dict[int, FileLog]:
        return find_file_logs(self.files, self._sources)
