"""A write of a bounded query to a path: files of its own, then a record that commits them.

The steps are those of a streaming query with one micro-batch: a record in ``owners`` begins a
generation, files are written into a folder of that generation, and a record in ``commits`` is
created last. So readers see the previous write or this one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from uuid import uuid4

from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.commits.marker_files import (
    HIDDEN,
    MARKER,
    number_of,
    numbered_folders,
    read_markers,
)
from gpu_windows.commits.records import COMMITS, OWNERS, RESULT, Commit, Owner, Part, part_folder
from gpu_windows.commits.write_target import Mode, WrittenFile, path_errors_of_results
from gpu_windows.errors import CheckpointError, OutputError

logger = logging.getLogger(__name__)


class BoundedWrite:
    """A write that has started.

    Parameters
    ----------
    files : CheckpointFiles
        Of the path.
    owner : Owner
        The write's own generation.
    mode : {"error", "overwrite"}
    """

    def __init__(self, files: CheckpointFiles, owner: Owner, mode: Mode) -> None:
        self._files = files
        self._owner = owner
        self._mode = mode
        attempt = uuid4().hex[:8]
        self._may_count = False
        #: Folder of its files, below the path.
        self.folder = part_folder(RESULT, owner.generation, 0, attempt)

    @classmethod
    def begin(cls, files: CheckpointFiles, schema: str, mode: Mode) -> BoundedWrite:
        """Record at a path that a write has started; readers do not see it.

        Parameters
        ----------
        files : CheckpointFiles
            Of the path.
        schema : str
            Of the results, as Spark writes it in JSON.
        mode : {"error", "overwrite"}

        Raises
        ------
        OutputError
            If the path holds results that may not be replaced, or cannot be written to.
        """
        with _errors_as_output_errors(files):
            numbers = _check_place(files)
            if mode == "error" and _find_committed(files, numbers):
                raise _exists(files)
            files.check_create()
            owner = Owner(max(numbers, default=-1) + 1, uuid4().hex, {RESULT: schema}, True)
            if not files.create(f"{owner.folder}/{MARKER}", owner.text.encode()):
                rule = "another write to the path has started at the same time"
                raise OutputError(rule, value=files.root)
        return cls(files, owner, mode)

    @property
    def part(self) -> CheckpointFiles:
        """The files of the folder."""
        return self._files.below(self.folder)

    def check_reached(self) -> None:
        """Raise `OutputError` unless this process sees the driver's record at the path."""
        with _errors_as_output_errors(self._files):
            if not self._files.exists(f"{self._owner.folder}/{MARKER}"):
                rule = (
                    "a task does not find the driver's record at the path: choose a path that the "
                    "driver and all executors reach"
                )
                raise OutputError(rule, value=self._files.root)

    @contextmanager
    def delete_on_error(self) -> Iterator[None]:
        """Delete the written files if the write fails; files that remain are never read.

        Files stay if the commit may exist although the store has reported an error.
        """
        try:
            yield
        except BaseException:
            if self._may_count:
                raise
            try:
                self._files.delete_folder(self.folder)
            except (OSError, CheckpointError) as error:
                folder = f"{self._files.root}/{self.folder}"
                logger.warning("files of a failed write stay until the next one: %s", folder)
                logger.debug("they cannot be deleted", exc_info=error)
            raise

    def commit(self, written: Iterable[WrittenFile]) -> tuple[str, ...]:
        """Commit files as the results of the path; return their paths.

        Parameters
        ----------
        written : iterable of WrittenFile
            Of the folder.

        Raises
        ------
        OutputError
            If another write has started since, or a file is missing.
        """
        rows = {file.name: file.rows for file in written}
        part = Part(self.folder, sum(rows.values()), rows)
        commit = Commit(self._owner.generation, 0, part.rows, {RESULT: part})
        with _errors_as_output_errors(self._files):
            self._check_files(rows)
            before = self._check_still_last()
            self._may_count = True
            if not self._create(f"{commit.folder}/{MARKER}", commit.text):
                self._may_count = False
                rule = "another process has written the record of this write"
                raise OutputError(rule, value=self._files.root)
        self._sweep(rows, before)
        return tuple(f"{self._files.root}/{self.folder}/{name}" for name in sorted(rows))

    def _create(self, name: str, text: str) -> bool:
        try:
            return self._files.create(name, text.encode())
        except OSError as error:
            rule = f"it is unknown whether the write was committed, read the path: {error}"
            raise OutputError(rule, value=self._files.root) from error

    def _check_files(self, names: Iterable[str]) -> None:
        found = {name.rpartition("/")[2] for name in self._files.names(self.folder)}
        missing = sorted({*names} - found)
        if missing:
            rule = "the driver does not find a file that a task has written: choose a shared path"
            raise OutputError(rule, value=f"{self._files.root}/{self.folder}/{missing[0]}")

    def _check_still_last(self) -> int:
        """Return the last committed generation, -1 without one; check that this is the newest."""
        numbers = _check_place(self._files)
        if max(numbers, default=-1) != self._owner.generation:
            rule = "another write to the path has started since, and its results will replace these"
            raise OutputError(rule, value=self._files.root)
        committed = _find_committed(self._files, numbers)
        if committed and self._mode == "error":
            raise _exists(self._files)
        return max(committed, default=-1)

    def _sweep(self, names: Mapping[str, int], before: int) -> None:
        """Delete older files, except those of the previous write, which may be read now.

        ``before``: generation of the previous write.
        """
        files, own = self._files, self._owner.generation
        try:
            for name in self.part.entries() or []:
                if name not in names and not name.startswith(HIDDEN):  # of attempts that failed
                    files.delete(f"{self.folder}/{name}")
            for name in files.below(RESULT).entries() or []:
                if _generation_of(name) not in (before, own) and _generation_of(name) < own:
                    files.delete_folder(f"{RESULT}/{name}")
            for folder in (*numbered_folders(files, COMMITS), *numbered_folders(files, OWNERS)):
                if number_of(folder) not in (before, own) and number_of(folder) < own:
                    files.delete_folder(folder)
        except (OSError, CheckpointError) as error:
            logger.warning("files that no longer count stay until the next write: %s", error)


def _generation_of(folder: str) -> int:
    """Return the generation of a folder of results."""
    number = folder.partition("-")[0]
    return int(number) if number.isdigit() else 1 << 62


def _check_place(files: CheckpointFiles) -> list[int]:
    """Return the generations of a path; refuse paths that are not for bounded queries."""
    owners = numbered_folders(files, OWNERS)
    entries = files.entries() or []
    others = [name for name in entries if not name.startswith(HIDDEN)]
    if not owners and others:
        rule = "the path holds files that write_parquet has not written: choose another one"
        raise OutputError(rule, value=f"{files.root}/{others[0]}")
    last = next(iter(read_markers(files, owners[-1])), None) if owners else None
    if last is not None and not Owner.from_text(last).is_bounded:
        rule = "the path belongs to a streaming query: choose another one"
        raise OutputError(rule, value=files.root)
    return [number_of(folder) for folder in owners]


def _find_committed(files: CheckpointFiles, generations: Iterable[int]) -> list[int]:
    """Return the generations whose write is complete."""
    folders = {number: Commit(number, 0, 0, {}).folder for number in generations}
    return [n for n, folder in folders.items() if files.exists(f"{folder}/{MARKER}")]


def _exists(files: CheckpointFiles) -> OutputError:
    rule = (
        'the path holds results: choose another one, or replace them by mode="overwrite", in SQL '
        "by INSERT OVERWRITE"
    )
    return OutputError(rule, value=files.root)


@contextmanager
def _errors_as_output_errors(files: CheckpointFiles) -> Iterator[None]:
    """Raise errors of a disk or a store as `OutputError`."""
    with path_errors_of_results():
        try:
            yield
        except OSError as error:
            raise OutputError(f"the path cannot be used: {error}", value=files.root) from error
