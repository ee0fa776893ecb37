"""Texts of a path that its files are asked for, without Spark."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_windows.checkpointing.files import CheckpointFiles

#: The file of a text in its folder, as processes of ours write it.
TEXT = "part-00000.txt"
#: What names of files begin with that are no texts.
HIDDEN = ("_", ".")


def numbered_folders(files: CheckpointFiles, folder: str) -> list[str]:
    """Return the folders in a folder whose names are numbers, in order."""
    entries = files.below(folder).entries() or []
    return [f"{folder}/{name}" for name in entries if name.isdigit()]


def number_of(folder: str) -> int:
    """Return the number that a folder is called by."""
    return int(folder.rpartition("/")[2])


def read_texts(files: CheckpointFiles, folder: str) -> Iterator[str]:
    """Yield the texts in a folder; none where there is no such folder."""
    for name in files.names(folder):
        if not name.rpartition("/")[2].startswith(HIDDEN):
            text = files.read(name).decode().strip()
            if text:
                yield text
