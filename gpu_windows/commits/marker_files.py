"""Marker files below a path, read without Spark."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_windows.checkpointing.files import CheckpointFiles

#: Name of a marker's file, as this package writes it without Spark.
MARKER = "part-00000.txt"
#: Prefixes of names of files that are not markers.
HIDDEN = ("_", ".")


def numbered_folders(files: CheckpointFiles, folder: str) -> list[str]:
    """Return the folders in a folder whose names are numbers, in order."""
    entries = files.below(folder).entries() or []
    return [f"{folder}/{name}" for name in entries if name.isdigit()]


def number_of(folder: str) -> int:
    """Return the number that is the name of a folder."""
    return int(folder.rpartition("/")[2])


def read_markers(files: CheckpointFiles, folder: str) -> Iterator[str]:
    """Yield the markers in a folder, none if there is no such folder."""
    for name in files.names(folder):
        if not name.rpartition("/")[2].startswith(HIDDEN):
            text = files.read(name).decode().strip()
            if text:
                yield text
