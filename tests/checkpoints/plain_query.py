"""A query without Spark, from a checkpoint to a path of results, and what lies there."""

from __future__ import annotations

from pathlib import Path

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import FOLDER, CheckpointFiles
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpoints import roll_back
from gpu_windows.spark_glue.streams.resume import read_resumed_commit
from tests.checkpoints.path_writer import PathWriter
from tests.spark_glue.drivers import Driver

KEEP = 20


def last_of(checkpoint: CheckpointFiles) -> str:
    """Return the lineage of the last commit; that of a new checkpoint if there is none."""
    last = CommitLog(checkpoint.below(FOLDER)).last()
    return "a" * 32 if last is None else last.lineage


def resume(checkpoint: CheckpointFiles) -> None:
    """Check what a start checks of a checkpoint."""
    read_resumed_commit(CommitLog(checkpoint.below(FOLDER)), checkpoint)


def start(folder: Path) -> Driver:
    """Start a query on the checkpoint ``state`` whose results are at the path ``out``."""
    files = LocalFiles(str(folder / "state"))
    resume(files)
    return Driver(files, PathWriter(folder / "out", last_of(files)), KEEP)


def run(folder: Path, end: int) -> None:
    start(folder).run_to(end)


def sums(end: int) -> list[tuple[int, int]]:
    """Return what is at the path after so many micro-batches, each once."""
    return [(number, sum(range(1, number + 2))) for number in range(end)]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def back(folder: Path, sequence: int) -> int:
    return roll_back(folder / "state", sequence, output=folder / "out")
