"""Where a checkpoint is: from a path or a URL to its files."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.errors import CheckpointError


def open_checkpoint(checkpoint: str | PathLike[str]) -> CheckpointFiles:
    """Return the files of a checkpoint. Nothing is read or written yet.

    Parameters
    ----------
    checkpoint : str or os.PathLike
        A path, or a URL with the scheme ``file``.

    Raises
    ------
    CheckpointError
        If it has another scheme.
    """
    text = os.fspath(checkpoint)
    parts = urlsplit(text)
    if parts.scheme not in ("", "file"):
        rule = "a checkpoint is on a disk that the driver and all executors reach by its path"
        raise CheckpointError(rule, value=text)
    path = url2pathname(parts.path) if parts.scheme else text
    return LocalFiles(str(Path(path).absolute()))
