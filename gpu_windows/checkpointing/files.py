"""Base class for the files of a checkpoint, which are complete or absent, and never change.

A new kind of store is a subclass of `CheckpointFiles`, which
`gpu_windows.checkpointing.locations` selects by its scheme. It must create a file only if there is
none of its name, so that only one driver can create a commit. A disk syncs a draft and links it to
its name; an object store supports the condition in its request.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import BinaryIO, ClassVar, Self

from gpu_windows.operators.state.files import StateFiles

#: The folder of this package in a checkpoint.
FOLDER = "gpu_windows"


@dataclass(frozen=True)
class CheckpointFiles(StateFiles, ABC):
    """The files below a folder, by their names relative to it (``state/0003/17-ab``).

    It can be pickled for Spark tasks.

    Parameters
    ----------
    root : str
        Path or URL of the folder.
    """

    root: str
    #: Whether requests are slow, so that several ranges should be read by one.
    is_remote: ClassVar[bool] = False

    def below(self, folder: str) -> Self:
        """Return the files below a folder of this one."""
        return replace(self, root=f"{self.root}/{folder}")

    @abstractmethod
    def holds(self, other: CheckpointFiles) -> bool:
        """Whether another folder is this one, or one below it."""

    @property
    @abstractmethod
    def spark_url(self) -> str:
        """URL of the folder for Spark."""

    @abstractmethod
    def check_create(self) -> None:
        """Raise `CheckpointError` for a store in which `create` could replace a file.

        Raises
        ------
        CheckpointError
        OSError
            If the store cannot be reached.
        """

    @abstractmethod
    def create(self, name: str, data: bytes) -> bool:
        """Create a file unless its name exists; return whether the file has this content.

        Only one of several concurrent processes succeeds. A store may answer that the name exists
        although this call created it, so the content is compared. Once this returns, the file
        survives a power failure.

        Raises
        ------
        OSError
            If writing fails.
        """

    @abstractmethod
    def write(self, name: str, parts: Iterable[bytes]) -> None:
        """Write a file with a name unique to this attempt.

        Once this returns, the file survives a power failure. If it raises, an incomplete file may
        remain: nothing may refer to it.

        Raises
        ------
        OSError
            Also if there is a file of this name, where the store can tell.
        """

    @abstractmethod
    def read(self, name: str) -> bytes:
        """Return a file.

        Raises
        ------
        OSError
            `FileNotFoundError` if there is none.
        """

    @abstractmethod
    def open(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Open a file to read it piece by piece.

        Raises
        ------
        OSError
            `FileNotFoundError` if there is none; perhaps only when it is read.
        """

    @abstractmethod
    def exists(self, name: str) -> bool:
        """Whether there is a file of this name."""

    @abstractmethod
    def entries(self) -> list[str] | None:
        """Return the names of files and folders directly in this folder, in order.

        None if there is no such folder; a store of objects has none without files.

        Raises
        ------
        OSError
            `NotADirectoryError` if it is a file.
        """

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, in order; none if there is no such folder.

        A name has the folder in it, as for `read`. Drafts are left out.
        """

    @abstractmethod
    def walk(self, folder: str) -> list[str]:
        """Return the names of the files in a folder and in those below it, in order.

        A name has the folder in it, as for `read`. Drafts are left out.
        """

    @abstractmethod
    def drafts(self, folder: str) -> dict[str, str]:
        """Return the drafts in a folder: incomplete files of running or crashed processes.

        Names of the drafts to the names of the files that they would become.
        """

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""

    def delete_all(self, names: Iterable[str]) -> None:
        """Delete the files that exist."""
        for name in names:
            self.delete(name)

    def delete_folder(self, folder: str) -> None:
        """Delete the files in a folder and in those below it."""
        self.delete_all(self.walk(folder))
