"""The commits of a checkpoint, one after another: each is created where none is, by one driver.

::

    commits/SEQUENCE                     a commit
    delivered/SEQUENCE                   its results are where the sink puts them
    state/STAGE-SHARD/SEQUENCE-ATTEMPT   a state file of the micro-batch that SEQUENCE was to commit
    results/SEQUENCE-ATTEMPT             staged results

Files that no commit names are of attempts that failed. They are found by the sequence in their
names, never by their age.

Of two drivers on a checkpoint one creates the next commit, which names its parent; the other one
ends with `ConcurrentQueryError` before it delivers or deletes anything. So does a driver that slept
while a commit of its number was made and swept: it finds later ones.
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
#: Commits that are kept at least: a reader of the last one may still be at the one before.
KEPT = 2


class CommitLog:
    """The commits of one checkpoint.

    Parameters
    ----------
    files : CheckpointFiles
        Of the folder of this package in the checkpoint.
    """

    def __init__(self, files: CheckpointFiles) -> None:
        self.files = files
        #: Files of commits that this process has made or read for a sweep: they do not change.
        self._known: dict[str, frozenset[str]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the commits: tasks do not sweep."""
        return {"files": self.files, "_known": {}}

    def last(self) -> StateCommit | None:
        """Return the last commit; None if there is none.

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
        """Return the commits that are kept, in order; those that are swept meanwhile are left out.

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
        """Return the latest kept commit of a micro-batch by Spark's number; None if there is none.

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
            If there is one of its sequence, or the one before it is not its parent: another driver
            runs a query on this checkpoint.
        OSError
            If the disk does not take it; then there is no such commit.
        """
        self._check_identity(commit.sequence - 1, commit.parent)
        name = _name(commit.sequence)
        if not self.files.create(name, commit.as_bytes):
            raise _concurrent(commit.sequence)
        newest = self.files.names(_COMMITS)[-1]
        if newest != name:  # another driver made one of this name, went on, and swept it
            raise _concurrent(_sequence(newest))
        self._known[name] = commit.files

    def check_is_in_reach(self) -> None:
        """Raise `CheckpointError` unless this process sees the commits that there are.

        Of a store once a process: a disk may be unmounted meanwhile.
        """
        if self.files.is_remote:
            _check_store(self.files)
        else:
            _check_commits(self.files)

    def check_is_last(self, sequence: int, identity: str) -> None:
        """Raise `ConcurrentQueryError` unless a commit is the last one; -1 is before all."""
        if self.files.exists(_name(sequence + 1)):
            raise _concurrent(sequence + 1)
        self._check_identity(sequence, identity)

    def _check_identity(self, sequence: int, identity: str) -> None:
        if sequence >= 0 and self._read(_name(sequence)).identity != identity:
            raise _concurrent(sequence)

    def is_delivered(self, commit: StateCommit) -> bool:
        """Whether the results of a commit are where the sink puts them."""
        return commit.was_delivered or self._is_marked(commit)

    def is_complete(self, commit: StateCommit) -> bool:
        """Whether the roll-back that has made a commit, if one has, came to its end."""
        return not commit.was_delivered or self._is_marked(commit)

    def _is_marked(self, commit: StateCommit) -> bool:
        return self.files.exists(_mark(commit.sequence))

    def mark_delivered(self, commit: StateCommit) -> None:
        """Note that the results of a commit were delivered.

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
        """Return the name of a state file; ``attempt``: hex digits that no other attempt has."""
        return f"{_state_folder(stage, shard)}/{sequence:012}-{attempt}"

    def results_file(self, sequence: int, attempt: str) -> str:
        """Return the name of a file of staged results; ``attempt``: see `state_file`."""
        return f"{_RESULTS}/{sequence:012}-{attempt}"

    def sweep(self, last: StateCommit, keep: int = KEPT) -> None:
        """Delete the commits before the last ``keep`` ones, and what only they need.

        Parameters
        ----------
        last : StateCommit
            The last one, delivered and this driver's own.
        keep : int
            At least `KEPT`.
        """
        names = self.files.names(_COMMITS)
        old = [name for name in names if _sequence(name) <= last.sequence - keep]
        if not old:
            return
        known = {name: self._known.get(name) for name in names}
        self._known = {
            name: self._read(name).files if found is None else found
            for name, found in known.items()
        }
        dropped = [self._known.pop(name) for name in old]
        unneeded = frozenset[str]().union(*dropped)
        for needed in self._known.values():
            unneeded = unneeded - needed  # most are in the first one: few are looked for in others
        # Before the commits: else a death leaves them.
        self._delete(unneeded.union(_mark(_sequence(name)) for name in old))
        self._delete(old)

    def sweep_failed_attempts(self) -> None:
        """Delete files of attempts that no commit names, and drafts; it lists the folders.

        Those of a sequence that is not committed yet are left alone: tasks of another driver may
        still write them.
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
        """Return a commit; if it is gone, another driver has swept it."""
        try:
            data = self.files.read(name)
        except FileNotFoundError as error:
            raise _concurrent(_sequence(name)) from error
        return StateCommit.from_bytes(data, name)


def _check_commits(files: CheckpointFiles) -> None:
    if not files.names(_COMMITS):
        rule = (
            "a checkpoint is where the driver and all executors reach it: on a shared disk, or "
            "in a store of objects that they have credentials of"
        )
        raise CheckpointError(rule, value=files.root)


_check_store = lru_cache(maxsize=16)(_check_commits)


def _name(sequence: int) -> str:
    return f"{_COMMITS}/{sequence:012}"


def _state_folder(stage: int, shard: int) -> str:
    return f"{_STATE}/{stage:02}-{shard:05}"


def _mark(sequence: int) -> str:
    return f"{_DELIVERED}/{sequence:012}"


def _sequence(name: str) -> int:
    found = _SEQUENCE.fullmatch(name.rpartition("/")[2])
    if found is None:
        raise StateCorruptedError("a checkpoint holds files of gpu_windows only", value=name)
    return int(found[1])


def _concurrent(sequence: int) -> ConcurrentQueryError:
    rule = "one query at a time runs on a checkpoint, and another one has committed to this one"
    return ConcurrentQueryError(rule, value=f"commit {sequence}")
