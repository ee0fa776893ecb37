"""A write of a bounded query to a path: files of its own, and then a text that names them.

The steps are those of a streaming query that writes one micro-batch: a text in ``owners`` says that
a generation begins, files come into a folder of that generation, and a text in ``commits`` is
created last. So readers have the write before, or this one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from uuid import uuid4

from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.commits.records import COMMITS, OWNERS, RESULT, Commit, Owner, Part, part_folder
from gpu_windows.commits.texts import HIDDEN, TEXT, number_of, numbered_folders, read_texts
from gpu_windows.commits.write_target import Mode, WrittenFile, says_path_of_results
from gpu_windows.errors import CheckpointError, OutputError

logger = logging.getLogger(__name__)


class BoundedWrite:
    """A write that has begun.

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
        #: Where its files belong, below the path.
        self.folder = part_folder(RESULT, owner.generation, 0, attempt)

    @classmethod
    def begin(cls, files: CheckpointFiles, schema: str, mode: Mode) -> BoundedWrite:
        """Note at a path that a write has begun; a reader sees nothing of it.

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
            If something is there that may not be replaced, or the path cannot be written to.
        """
        with _says_what_fails(files):
            numbers = _check_place(files)
            if mode == "error" and _committed(files, numbers):
                raise _exists(files)
            files.check_create()
            owner = Owner(max(numbers, default=-1) + 1, uuid4().hex, {RESULT: schema}, True)
            if not files.create(f"{owner.folder}/{TEXT}", owner.text.encode()):
                rule = "another write to the path has begun at this moment"
                raise OutputError(rule, value=files.root)
        return cls(files, owner, mode)

    @property
    def part(self) -> CheckpointFiles:
        """The files of the folder."""
        return self._files.below(self.folder)

    def check_reached(self) -> None:
        """Raise `OutputError` unless this process finds what another has put at the path."""
        with _says_what_fails(self._files):
            if not self._files.exists(f"{self._owner.folder}/{TEXT}"):
                rule = (
                    "a task does not find at the path what the driver has put there: take a path "
                    "that the driver and all executors reach"
                )
                raise OutputError(rule, value=self._files.root)

    @contextmanager
    def abandoned_on_error(self) -> Iterator[None]:
        """Delete what has been written if it fails; what remains is never read.

        Unless the text may be there that says that it counts, whatever the store has answered.
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
        """Let files count, and no others; return their paths.

        Parameters
        ----------
        written : iterable of WrittenFile
            Of the folder.

        Raises
        ------
        OutputError
            If another write has begun since, or a file is not there.
        """
        rows = {file.name: file.rows for file in written}
        part = Part(self.folder, sum(rows.values()), rows)
        commit = Commit(self._owner.generation, 0, part.rows, {RESULT: part})
        with _says_what_fails(self._files):
            self._check_files(rows)
            before = self._check_still_last()
            self._may_count = True
            if not self._create(f"{commit.folder}/{TEXT}", commit.text):
                self._may_count = False
                rule = "another process has written the text of this write"
                raise OutputError(rule, value=self._files.root)
        self._sweep(rows, before)
        return tuple(f"{self._files.root}/{self.folder}/{name}" for name in sorted(rows))

    def _create(self, name: str, text: str) -> bool:
        try:
            return self._files.create(name, text.encode())
        except OSError as error:
            rule = f"whether the write counts is not known, read the path: {error}"
            raise OutputError(rule, value=self._files.root) from error

    def _check_files(self, names: Iterable[str]) -> None:
        found = {name.rpartition("/")[2] for name in self._files.names(self.folder)}
        missing = sorted({*names} - found)
        if missing:
            rule = "the driver does not find a file that a task has written: take a shared path"
            raise OutputError(rule, value=f"{self._files.root}/{self.folder}/{missing[0]}")

    def _check_still_last(self) -> int:
        """Return the generation that has counted until now, -1 if none."""
        numbers = _check_place(self._files)
        if max(numbers, default=-1) != self._owner.generation:
            rule = "another write to the path has begun meanwhile, and its results will count"
            raise OutputError(rule, value=self._files.root)
        committed = _committed(self._files, numbers)
        if committed and self._mode == "error":
            raise _exists(self._files)
        return max(committed, default=-1)

    def _sweep(self, names: Mapping[str, int], before: int) -> None:
        """Delete what counts no more, but for the write before: somebody may read it.

        ``before``: its generation.
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
    """Return the generations that have begun at a path; refuse what is not for bounded queries."""
    owners = numbered_folders(files, OWNERS)
    entries = files.entries() or []
    others = [name for name in entries if not name.startswith(HIDDEN)]
    if not owners and others:
        rule = "the path holds files that write_parquet has not written: take another one"
        raise OutputError(rule, value=f"{files.root}/{others[0]}")
    last = next(iter(read_texts(files, owners[-1])), None) if owners else None
    if last is not None and not Owner.from_text(last).is_bounded:
        rule = "the path belongs to a streaming query: take another one"
        raise OutputError(rule, value=files.root)
    return [number_of(folder) for folder in owners]


def _committed(files: CheckpointFiles, generations: Iterable[int]) -> list[int]:
    """Return those of some generations that are complete."""
    folders = {number: Commit(number, 0, 0, {}).folder for number in generations}
    return [n for n, folder in folders.items() if files.exists(f"{folder}/{TEXT}")]


def _exists(files: CheckpointFiles) -> OutputError:
    rule = 'the path holds results: take another one, or replace them by mode="overwrite"'
    return OutputError(rule, value=files.root)


@contextmanager
def _says_what_fails(files: CheckpointFiles) -> Iterator[None]:
    """Raise `OutputError` where a disk or a store refuses."""
    with says_path_of_results():
        try:
            yield
        except OSError as error:
            raise OutputError(f"the path cannot be used: {error}", value=files.root) from error
