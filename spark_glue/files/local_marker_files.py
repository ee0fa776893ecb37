"""Small texts in folders of their own on a disk of this machine: written and found without Spark.

A job of Spark's that writes one takes longer than what else is done for a few results.
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

#: The file of a text.
_NAME = "part-00000.txt"


def seen_here(session: SparkSession, path: str, folder: str, text: str) -> Path | None:
    """Return a path as a folder of this machine; None if it is not surely the one that Spark has.

    Parameters
    ----------
    session : SparkSession
    path, folder : str
        A path, and a folder below it where Spark has put a text.
    text : str
        What it has put there, and nowhere else.
    """
    for uri in files_of(session, f"{literal(path)}/{folder}"):
        file = Path(url2pathname(urlsplit(uri).path))
        root = file.parent.as_posix().removesuffix(f"/{folder}")
        if uri.startswith("file:") and _read(file) == text:
            return Path(root)
    return None


def texts_in(folder: Path) -> list[str]:
    """Return the texts in a folder; none where there is no such folder.

    Raises
    ------
    OSError
        If what is there cannot be read: it may be a text.
    """
    if not folder.is_dir():
        return []
    files = (file for file in folder.iterdir() if not file.name.startswith(("_", ".")))
    return [text for file in files if (text := file.read_text("utf-8").strip())]


def put_here(folder: Path, text: str) -> bool:
    """Write a text where none is; return whether it is there now.

    It appears when it is whole, and of several processes that write one at once one does: a link to
    a name is made by one only. Where disks sync folders it outlives a power cut from then on; of
    what Spark has written before, that is up to Spark.

    Raises
    ------
    OSError
        If the disk does not take it, or has no links; nothing is there then.
    """
    if texts_in(folder):
        return False
    named_in = make_folder(folder)
    if not link_whole(folder / _NAME, text):
        return False
    sync_folders([folder, *named_in])
    return True


def make_folder(folder: Path) -> list[Path]:
    """Make a folder, and those above it; return the folders that name those which were not there.

    Raises
    ------
    OSError
        If the disk does not take it.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return [each.parent for each in missing]


def link_whole(file: Path, text: str) -> bool:
    """Write a file that appears when it is whole; False: there is one of its name.

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
        with suppress(OSError):  # a draft that is left is never read
            draft.unlink()
    return True


def sync_folders(folders: Iterable[Path]) -> None:
    """Have the disk hold the names in folders; some disks cannot, and what is named is there."""
    for folder in dict.fromkeys(folders):
        with suppress(OSError):
            opened = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(opened)
            finally:
                os.close(opened)


def _read(file: Path) -> str | None:
    """Return the text of a file; None where there is none that can be read."""
    try:
        return file.read_text("utf-8").strip()
    except (OSError, ValueError):
        return None
