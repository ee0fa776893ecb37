"""Marker files on a disk of this machine, written and read without Spark.

A Spark job that writes a marker takes longer than everything else that is done for a few results.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname
from uuid import uuid4

from gpu_windows.spark_glue.files.marker_files import files_of, literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Name of a marker's file.
_NAME = "part-00000.txt"


def find_local_folder(session: SparkSession, path: str, folder: str, text: str) -> Path | None:
    """Return a path as a folder of this machine; None unless it is certainly the one Spark sees.

    Parameters
    ----------
    session : SparkSession
    path, folder : str
        A path, and a folder below it in which Spark has written a marker.
    text : str
        Content of the marker, which no other file has.
    """
    for uri in files_of(session, f"{literal(path)}/{folder}"):
        file = Path(url2pathname(urlsplit(uri).path))
        root = file.parent.as_posix().removesuffix(f"/{folder}")
        if uri.startswith("file:") and _read(file) == text:
            return Path(root)
    return None


def read_local_markers(folder: Path) -> list[str]:
    """Return the markers in a folder; none if there is no such folder.

    Raises
    ------
    OSError
        If a file cannot be read: it may be a marker.
    """
    if not folder.is_dir():
        return []
    files = (file for file in folder.iterdir() if not file.name.startswith(("_", ".")))
    return [text for file in files if (text := file.read_text("utf-8").strip())]


def write_local_marker(folder: Path, text: str) -> bool:
    """Write a marker unless there is one; return whether this call wrote it.

    It appears atomically, and only one of several concurrent processes succeeds: creating a link
    fails if its name exists. On disks that sync folders it then survives a power cut; files that
    Spark has written before may not.

    Raises
    ------
    OSError
        If the disk does not take it, or has no links; nothing is there then.
    """
    if read_local_markers(folder):
        return False
    parents = make_folder(folder)
    if not link_whole(folder / _NAME, text):
        return False
    sync_folders([folder, *parents])
    return True


def make_folder(folder: Path) -> list[Path]:
    """Make a folder and its parents; return the parents of the folders that were created.

    Raises
    ------
    OSError
        If the disk does not take it.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return [each.parent for each in missing]


def link_whole(file: Path, text: str) -> bool:
    """Create a file atomically; return False if there is one of its name.

    Raises
    ------
    OSError
        If the disk does not take it, or has no links; nothing is there then.
    """
    draft = file.with_name(f".{file.name}.{uuid4().hex}.tmp")
    try:
        with draft.open("w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        os.link(draft, file)
    except FileExistsError:
        return False
    finally:
        with suppress(OSError):  # drafts are never read
            draft.unlink()
    return True


def sync_folders(folders: Iterable[Path]) -> None:
    """Sync the entries of folders to disk, where the disk can; errors are ignored."""
    for folder in dict.fromkeys(folders):
        with suppress(OSError):
            opened = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(opened)
            finally:
                os.close(opened)


def _read(file: Path) -> str | None:
    """Return the text of a file; None if it cannot be read."""
    try:
        return file.read_text("utf-8").strip()
    except (OSError, ValueError):
        return None
