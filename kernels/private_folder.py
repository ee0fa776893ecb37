"""Folders of this user alone: compiled kernels are code, whose index Numba unpickles.

Whoever can write there, or can put a folder of his own in that place, runs code in our processes.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

#: Permission to write, of the group and of others.
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_ROOT = 0


class NotPrivateError(Exception):
    """A folder that is there, but which somebody else could write to; the text says why."""


def private_folder(base: Path, *names: str) -> Path | None:
    """Return ``base/names...``, made with mode 0700 where it was missing; None if it cannot be.

    Links in ``base`` are resolved, and every folder on the way to it is looked at.

    Parameters
    ----------
    base : Path
        Somebody else's choice (``/tmp``, ``~/.cache``), made if it was missing.
    *names : str
        Folders that are ours.

    Raises
    ------
    NotPrivateError
        If a folder below ``base`` is a link or none, belongs to another user, or others may write
        to it; or if others may put another folder in its place.
    """
    try:
        base.mkdir(parents=True, exist_ok=True)
        folder = base.resolve()  # a link may be turned later
        for above in (folder, *folder.parents):
            _check_above(above)
        for name in names:
            folder = folder / name
            _make(folder)
            _check_ours(folder)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return None


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return  # it is looked at next


def _check_above(folder: Path) -> None:
    """Check that nobody but root can rename what others have there."""
    found = folder.stat()
    if found.st_uid not in (_ROOT, os.geteuid()):
        raise NotPrivateError(f"{folder} belongs to user {found.st_uid}")
    if found.st_mode & _OTHERS_WRITE and not found.st_mode & stat.S_ISVTX:
        raise NotPrivateError(f"in {folder} others may rename what is not theirs")


def _check_ours(folder: Path) -> None:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        kind = "a link" if stat.S_ISLNK(found.st_mode) else "no folder"
        raise NotPrivateError(f"{folder} is {kind}")
    if found.st_uid != os.geteuid():
        raise NotPrivateError(f"{folder} belongs to user {found.st_uid}, not to {os.geteuid()}")
    if found.st_mode & _OTHERS_WRITE:
        mode = stat.S_IMODE(found.st_mode)
        raise NotPrivateError(f"others may write to {folder}, its mode is {mode:o}")
