"""The log of a checkpoint's commits: each is created atomically by one driver.

::

    commits/SEQUENCE                     a commit
    delivered/SEQUENCE                   the sink has its results
    state/STAGE-SHARD/SEQUENCE-ATTEMPT   a state file written for commit SEQUENCE
    results/SEQUENCE-ATTEMPT             staged results

Files that no commit names are left of failed attempts. They are recognized by the sequence in their
names, never by their age.

If two drivers run on a checkpoint, one creates the next commit, which names its parent; the other
ends with `ConcurrentQueryError` before it delivers or deletes anything. So does a driver that was
suspended while a commit of its number was created and swept: it finds later ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any

from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.errors import CheckpointError, ConcurrentQueryError, StateCorruptedError

_COMMITS, _DELIVERED, _STATE, _RESULTS = "commits", "delivered", "state", "results"
_SEQUENCE = re.compile(r"(\d{12})(-[0-9a-f]+)?")
#: Minimum number of commits to keep: a reader may still use the one before the last.
MIN_COMMITS = 2


class CommitLog:
    """The commits of one checkpoint.

    Parameters
    ----------
    files : CheckpointFiles
        Of the folder of this package in the checkpoint.
    """

    def __init__(self, files: CheckpointFiles) -> None:
        self.files = files
        #: Commits to their files, cached because they never change.
        self._cached_files: dict[str, frozenset[str]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the commits: tasks do not sweep."""
        return {**vars(self), "_cached_files": {}}

    def last(self) -> StateCommit | None:
        """Return the last commit, or None.

        Raises
        ------
        StateCorruptedError, StateVersionError
            If it cannot be read.
        """
        while names := self.files.names(_COMMITS):
            with suppress(ConcurrentQueryError):  # it was swept since: there are later ones
                return self._read(names[-1])
        return None

    def read_all(self) -> list[StateCommit]:
        """Return the commits, in order; those that are swept meanwhile are left out.

        Raises
        ------
        StateCorruptedError, StateVersionError
            If one cannot be read.
        """
        commits = []
        for name in self.files.names(_COMMITS):
            with suppress(ConcurrentQueryError):  # it was swept since
                commits.append(self._read(name))
        return commits

    def find(self, number: int) -> StateCommit | None:
        """Return the latest commit of a micro-batch by Spark's number, or None.

        Raises
        ------
        ConcurrentQueryError
            If another driver sweeps the commits meanwhile.
        """
        for name in reversed(self.files.names(_COMMITS)):
            commit = self._read(name)
            if commit.number == number:
                return commit
        return None

    def add(self, commit: StateCommit) -> None:
        """Create a commit after the last one.

        Raises
        ------
        ConcurrentQueryError
            If its sequence exists, or the previous commit is not its parent: another driver runs a
            query on this checkpoint.
        OSError
            If writing fails; then there is no such commit.
        """
        self._check_identity(commit.sequence - 1, commit.parent)
        name = _name(commit.sequence)
        if not self.files.create(name, commit.as_bytes):
            raise _concurrent(commit.sequence)
        newest = self.files.names(_COMMITS)[-1]
        if newest != name:  # another driver created one of this name, later ones, and swept it
            raise _concurrent(_sequence(newest))
        self._cached_files[name] = commit.files

    def check_is_reachable(self) -> None:
        """Raise `CheckpointError` unless this process can see the commits.

        A store is checked once per process; a disk every time, because it may be unmounted.
        """
        if self.files.is_remote:
            _check_store(self.files)
        else:
            _check_commits(self.files)

    def check_is_last(self, sequence: int, identity: str) -> None:
        """Raise `ConcurrentQueryError` unless a commit is the last one; -1: none."""
        if self.files.exists(_name(sequence + 1)):
            raise _concurrent(sequence + 1)
        self._check_identity(sequence, identity)

    def _check_identity(self, sequence: int, identity: str) -> None:
        if sequence >= 0 and self._read(_name(sequence)).identity != identity:
            raise _concurrent(sequence)

    def is_delivered(self, commit: StateCommit) -> bool:
        """Whether the sink has the results of a commit."""
        return commit.was_delivered or self._is_marked(commit)

    def is_complete(self, commit: StateCommit) -> bool:
        """Whether a commit is complete: false for one of a rollback that did not end."""
        return not commit.was_delivered or self._is_marked(commit)

    def _is_marked(self, commit: StateCommit) -> bool:
        return self.files.exists(_mark(commit.sequence))

    def mark_delivered(self, commit: StateCommit) -> None:
        """Record that the results of a commit were delivered.

        Raises
        ------
        OSError
        """
        self.files.create(_mark(commit.sequence), commit.identity.encode())

    @staticmethod
    def name(commit: StateCommit) -> str:
        """Return the name of the file of a commit."""
        return _name(commit.sequence)

    def state_file(self, sequence: int, stage: int, shard: int, attempt: str) -> str:
        """Return the name of a state file; ``attempt``: hex digits unique to this attempt."""
        return f"{_STATE}/{stage:02}-{shard:05}/{sequence:012}-{attempt}"

    def results_file(self, sequence: int, attempt: str) -> str:
        """Return the name of a file of staged results; ``attempt``: see `state_file`."""
        return f"{_RESULTS}/{sequence:012}-{attempt}"

    def sweep(self, last: StateCommit, keep: int = MIN_COMMITS) -> None:
        """Delete the commits before the last ``keep`` ones, and files that only they need.

        Parameters
        ----------
        last : StateCommit
            The last one, which this driver has made and delivered.
        keep : int
            At least `MIN_COMMITS`.
        """
        names = self.files.names(_COMMITS)
        old = [name for name in names if _sequence(name) <= last.sequence - keep]
        if not old:
            return
        cached = {name: self._cached_files.get(name) for name in names}
        self._cached_files = {
            name: self._read(name).files if found is None else found
            for name, found in cached.items()
        }
        dropped = [self._cached_files.pop(name) for name in old]
        unneeded = frozenset[str]().union(*dropped)
        for needed in self._cached_files.values():
            unneeded -= needed  # most are in the first one, so later differences are small
        # Before the commits, so that a crash in between leaves no orphans.
        self._delete(unneeded.union(_mark(_sequence(name)) for name in old))
        self._delete(old)

    def sweep_failed_attempts(self) -> None:
        """List all folders, and delete drafts and files of attempts that no commit names.

        Files of a sequence that is not committed yet stay: tasks of another driver may still write
        them.
        """
        commits = [self._read(name) for name in self.files.names(_COMMITS)]
        if not commits:
            return
        needed = frozenset[str]().union(*(commit.files for commit in commits))
        last = commits[-1]
        for folder in (_RESULTS, _STATE):  # there may have been more shards before
            self._delete(
                name
                for name in self.files.walk(folder)
                if _sequence(name) <= last.sequence and name not in needed
            )
        for folder in (_COMMITS, _DELIVERED):
            drafts = self.files.drafts(folder).items()
            self._delete(draft for draft, name in drafts if _sequence(name) <= last.sequence)

    def _delete(self, names: Iterable[str]) -> None:
        self.files.delete_all(sorted(names))

    def _read(self, name: str) -> StateCommit:
        """Read a commit; raise `ConcurrentQueryError` if another driver has swept it."""
        try:
            data = self.files.read(name)
        except FileNotFoundError as error:
            raise _concurrent(_sequence(name)) from error
        return StateCommit.from_bytes(data, name)


def _check_commits(files: CheckpointFiles) -> None:
    if not files.names(_COMMITS):
        rule = (
            "the driver and all executors must reach a checkpoint: on a shared disk, or in an "
            "object store for which they have credentials"
        )
        raise CheckpointError(rule, value=files.root)


_check_store = lru_cache(maxsize=16)(_check_commits)


def _name(sequence: int) -> str:
    return f"{_COMMITS}/{sequence:012}"


def _mark(sequence: int) -> str:
    return f"{_DELIVERED}/{sequence:012}"


def _sequence(name: str) -> int:
    found = _SEQUENCE.fullmatch(name.rpartition("/")[2])
    if found is None:
        raise StateCorruptedError(
            "the folder of gpu_windows in a checkpoint must hold its own files only", value=name
        )
    return int(found[1])


def _concurrent(sequence: int) -> ConcurrentQueryError:
    rule = "only one query at a time may run on a checkpoint, and another one has committed to it"
    return ConcurrentQueryError(rule, value=f"commit {sequence}")
