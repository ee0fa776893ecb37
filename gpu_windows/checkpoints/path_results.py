"""Results at a path on a disk: withdrawn, and handed to the lineage that goes on."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Self

from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpointing.locations import open_checkpoint
from gpu_windows.commits.records import BLOCK, COMMITS, OWNERS, Owner
from gpu_windows.commits.texts import TEXT, number_of, numbered_folders, read_texts
from gpu_windows.errors import CheckpointError, OutputError


@dataclass(frozen=True)
class PathResults:
    """What a query has written to a path.

    Parameters
    ----------
    files : CheckpointFiles
        Of the path.
    owners : tuple of Owner
        The queries that wrote there, in order.
    lineages : set of str
        Those of the query.
    """

    files: CheckpointFiles
    owners: tuple[Owner, ...]
    lineages: Set[str]

    @classmethod
    def open(cls, path: str | PathLike[str], lineages: Set[str]) -> Self:
        """Read whose results are at a path; change nothing.

        Raises
        ------
        OutputError
            If it is no path of results, or none on a disk, or another query may write there.
        """
        files = _open_path(path)
        texts = (
            text for folder in numbered_folders(files, OWNERS) for text in read_texts(files, folder)
        )
        by_number = {
            each.generation: each for each in map(Owner.from_text, sorted(texts, reverse=True))
        }
        owners = tuple(by_number[number] for number in sorted(by_number))
        if not owners or owners[-1].query not in lineages:
            rule = "the output must be the path to which the query of the checkpoint writes"
            raise OutputError(rule, value=files.root)
        return cls(files, owners, lineages)

    def claim(self, lineage: str) -> None:
        """Let a lineage of the query write there from now on; no earlier one may.

        Raises
        ------
        OutputError
            If another query was faster.
        """
        last = self.owners[-1]
        owner = replace(last, generation=last.generation + 1, query=lineage)
        is_taken = any(read_texts(self.files, owner.folder))
        if is_taken or not self.files.create(f"{owner.folder}/{TEXT}", owner.text.encode()):
            rule = "a query of another checkpoint has taken over the path"
            raise OutputError(rule, value=self.files.root)

    def withdraw(self, number: int) -> None:
        """Withdraw what the query has written after a micro-batch, the newest first.

        Its Parquet files stay, as those of attempts that failed do.
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

    Elsewhere Spark writes what says whose a path is, and not only where there is nothing.
    """
    rule = "results can be withdrawn from a path on a disk of this machine"
    try:
        files = open_checkpoint(path)
    except CheckpointError as error:
        raise OutputError(rule, value=fspath(path)) from error
    if not isinstance(files, LocalFiles):
        raise OutputError(rule, value=fspath(path))
    return files
