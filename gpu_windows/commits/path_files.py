"""Files with the complete results of a path, found without Spark."""

from __future__ import annotations

from pathlib import PurePosixPath

from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.commits.completeness import select_files
from gpu_windows.commits.marker_files import numbered_folders, read_markers
from gpu_windows.commits.path_log import NOTHING, PathLog
from gpu_windows.commits.records import OWNERS, RESULT, Owner
from gpu_windows.errors import OutputError


def committed_files(path: str) -> list[str]:
    """Return the Parquet files of complete micro-batches, or of the last complete write.

    Parameters
    ----------
    path : str
        Of results, on a local disk.

    Raises
    ------
    OutputError
        If no write is complete, or a file is missing.
    """
    files, log = LocalFiles(path), PathLog(path)
    commits = list(log.between(NOTHING))
    last = [
        Owner.from_text(text) for text in read_markers(files, numbered_folders(files, OWNERS)[-1])
    ]
    if last[0].is_bounded:
        if not commits:
            raise OutputError("no write to the path is complete: write it again", value=path)
        commits = commits[-1:]
    found: list[str] = []
    for commit in commits:
        part = commit.outputs.get(RESULT)
        if part is not None:
            rows = log.rows_of_files(part.folder)
            names = {PurePosixPath(file).name: count for file, count in rows.items()}
            there = part.choose_files(names)
            readable = select_files(path, commit, RESULT, there, "raise")
            found += [f"{path}/{part.folder}/{name}" for name in readable]
    return found
