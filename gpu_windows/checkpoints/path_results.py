"""Withdraws results at a path on a disk after a rollback, and claims it for the new lineage."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Self

from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpointing.locations import open_checkpoint
from gpu_windows.commits.marker_files import MARKER, number_of, numbered_folders, read_markers
from gpu_windows.commits.records import BLOCK, COMMITS, OWNERS, Owner, read_owners
from gpu_windows.errors import CheckpointError, OutputError


@dataclass(frozen=True)
class PathResults:
    """Results of a query at a path.

    Parameters
    ----------
    files : CheckpointFiles
        Of the path.
    owners : tuple of Owner
        The queries that wrote there, in order.
    lineages : set of str
        Of the query.
    """

    files: CheckpointFiles
    owners: tuple[Owner, ...]
    lineages: Set[str]

    @classmethod
    def open(cls, path: str | PathLike[str], lineages: Set[str]) -> Self:
        """Read the owners of a path; change nothing.

        Raises
        ------
        OutputError
            If it is not a path of results on a disk, or another query owns it.
        """
        files = _open_path(path)
        texts = (
            text
            for folder in numbered_folders(files, OWNERS)
            for text in read_markers(files, folder)
        )
        owners = tuple(read_owners(texts))
        if not owners or owners[-1].query not in lineages:
            rule = "the output must be the path to which the query of the checkpoint writes"
            raise OutputError(rule, value=files.root)
        return cls(files, owners, lineages)

    def claim(self, lineage: str) -> None:
        """Make a lineage of the query the owner of the path.

        Raises
        ------
        OutputError
            If another query has claimed it.
        """
        last = self.owners[-1]
        owner = replace(last, generation=last.generation + 1, query=lineage)
        is_taken = any(read_markers(self.files, owner.folder))
        if is_taken or not self.files.create(f"{owner.folder}/{MARKER}", owner.text.encode()):
            rule = "a query of another checkpoint has taken over the path"
            raise OutputError(rule, value=self.files.root)

    def withdraw(self, number: int) -> None:
        """Delete the records of micro-batches after a number, the newest first.

        Their Parquet files stay, as those of failed attempts do.
        """
        for folder in self._later(number):
            for name in self.files.names(folder):
                self.files.delete(name)

    def _later(self, number: int) -> Iterator[str]:
        """Yield the folders of the records of later micro-batches."""
        for owner in reversed(self.owners):
            if owner.query in self.lineages:
                generation = f"{COMMITS}/{owner.folder.rpartition('/')[2]}"
                for block in reversed(numbered_folders(self.files, generation)):
                    if number_of(block) >= number // BLOCK:
                        every = reversed(numbered_folders(self.files, block))
                        yield from (each for each in every if number_of(each) > number)


def _open_path(path: str | PathLike[str]) -> LocalFiles:
    """Return the files of a path on a disk.

    In other places Spark writes the records of owners, and cannot create them conditionally.
    """
    rule = "results can be withdrawn from a path on a disk of this machine"
    try:
        files = open_checkpoint(path)
    except CheckpointError as error:
        raise OutputError(rule, value=fspath(path)) from error
    if not isinstance(files, LocalFiles):
        raise OutputError(rule, value=fspath(path))
    return files
