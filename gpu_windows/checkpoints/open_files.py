"""Keeps files of a checkpoint open, because its query may run and delete them meanwhile."""

from __future__ import annotations

import resource
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO

from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.local_files import LocalFiles

#: Fraction of a process's limit of open files that is used here.
_SHARE = 0.5


@dataclass(frozen=True)
class OpenFiles(LocalFiles):
    """Files of a checkpoint; those that are open can be read after they were deleted.

    Parameters
    ----------
    root : str
        Path of the folder.
    handles : mapping of str to file
        Names of the files that are open.
    """

    handles: Mapping[str, BinaryIO]

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Open a file to read ranges of it."""
        file = self.handles.get(name)
        if file is None:
            with super().open(name) as file:
                yield file
        else:
            file.seek(0)
            yield file


@contextmanager
def open_all(files: CheckpointFiles, names: Iterable[str]) -> Iterator[CheckpointFiles]:
    """Open files of a checkpoint, the newest first, because they are deleted first.

    Missing files, files beyond the limit of the process and files in an object store are not
    opened here, but when they are read.
    """
    if not isinstance(files, LocalFiles):
        yield files
        return
    in_order = sorted(names, key=lambda name: PurePosixPath(name).name, reverse=True)
    with ExitStack() as stack:
        handles: dict[str, BinaryIO] = {}
        for name in in_order[: _read_file_limit()]:
            with suppress(FileNotFoundError):
                handles[name] = stack.enter_context(files.open(name))
        yield OpenFiles(files.root, handles)


def _read_file_limit() -> int | None:
    """Return the maximum number of files to open here; None: no limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if limit == resource.RLIM_INFINITY else int(limit * _SHARE)
