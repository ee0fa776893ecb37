"""Copies a checkpoint as it was after a commit.

Spark's part is written first, by which a start tells a folder that is not a new one; the commit
last, without which a start refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path
from uuid import uuid4

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import FOLDER, CheckpointFiles, local_path
from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.checkpoints.commits import find_commit, open_commits, report_disk_errors
from gpu_windows.checkpoints.open_files import open_all
from gpu_windows.checkpoints.spark_part import SparkPart
from gpu_windows.errors import CheckpointError

#: Spark's file with the id of a query.
_METADATA = "metadata"
_UUID = re.compile(rb"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_BLOCK_BYTES = 1 << 20


def copy_checkpoint(
    checkpoint: str | PathLike[str], sequence: int, target: str | PathLike[str]
) -> None:
    """Copy a checkpoint as it was after a commit, while its query runs or after.

    The copy is of a query of its own, which resumes after the commit: it has another lineage and
    another id, so both may run at once, and a path of results takes only one of them. What the
    commit has given is not given to the sink of the copy.

    Parameters
    ----------
    checkpoint : str or os.PathLike
        Its path, as `gpu_windows.write_stream` was given it. Nothing in it is changed.
    sequence : int
        Of the commit, one of `gpu_windows.read_commits`.
    target : str or os.PathLike
        Path of the copy: a new folder, or an empty one.

    Raises
    ------
    CheckpointError
        If there is no such checkpoint or commit; if Spark, which keeps 100 micro-batches, has
        removed what it noted of the commit's, or has noted others since; if Spark keeps state of
        steps before ours; if the target is not empty; if files cannot be read or written; if the
        query deletes what the commit needs meanwhile.
    StateCorruptedError, StateVersionError
        If a commit cannot be read.

    Examples
    --------
    >>> from gpu_windows import checkpoints
    >>> checkpoints.copy_checkpoint("checkpoint", 41, "checkpoint-of-tests")  # doctest: +SKIP
    """
    folder, to = local_path(checkpoint), local_path(target)
    with report_disk_errors(folder):
        log, commits = open_commits(folder)
        commit = find_commit(commits, sequence)
        spark = SparkPart(CheckpointFiles(str(folder)))
        spark.check_has_no_state()
        spark.check_can_resume(commit)
        _check_target(to, folder)
        try:
            _copy(log, commit, spark, to)
        except FileNotFoundError as error:
            rule = (
                "the files that the commit needs must stay while they are copied: the query has "
                "deleted some. Delete the copy, if there is one, and copy a later commit, or have "
                "the query keep more of them (keep=)"
            )
            raise CheckpointError(rule, value=f"commit {sequence}: {error.filename}") from error


def _copy(log: CommitLog, commit: StateCommit, spark: SparkPart, to: Path) -> None:
    of_spark = _read_spark_part(spark, commit)
    with open_all(log.files, commit.files) as files:
        for name in commit.files - files.handles.keys():
            with files.open(name):  # it is missing, or there are too many
                pass
        written, ours = CheckpointFiles(str(to)), CheckpointFiles(str(to / FOLDER))
        for name, data in of_spark.items():
            written.write(name, [data])
        for name in sorted(commit.files):
            ours.write(name, _read_blocks(files, name))
    first = replace(
        commit, lineage=uuid4().hex, was_delivered=True, identity=uuid4().hex, parent=""
    )
    CommitLog(ours).mark_delivered(first)
    if not ours.create(log.name(first), first.as_bytes):
        raise _target_error(to)


def _read_spark_part(spark: SparkPart, commit: StateCommit) -> dict[str, bytes]:
    """Return Spark's files by name, the one that every checkpoint of Spark's has first."""
    names = spark.files_until(commit.number)
    data = {}
    if commit.number >= 0 or spark.files.exists(_METADATA):
        data[_METADATA] = _UUID.sub(str(uuid4()).encode(), spark.files.read(_METADATA))
    return data | {name: spark.files.read(name) for name in names}


def _read_blocks(files: CheckpointFiles, name: str) -> Iterator[bytes]:
    with files.open(name) as file:
        while block := file.read(_BLOCK_BYTES):
            yield block


def _check_target(to: Path, folder: Path) -> None:
    """Raise `CheckpointError` unless the target is new or empty, and elsewhere."""
    if to.resolve().is_relative_to(folder.resolve()):
        raise CheckpointError("the copy of a checkpoint must be outside of it", value=to)
    if to.exists() and not to.is_dir():
        raise _target_error(to)
    names = {each.name for each in to.iterdir()} if to.exists() else set[str]()
    if _METADATA in names and not CheckpointFiles(str(to / FOLDER)).names("commits"):
        rule = "a copy that did not end must be deleted before it is made again"
        raise CheckpointError(rule, value=to)
    if names:
        raise _target_error(to)


def _target_error(to: Path) -> CheckpointError:
    return CheckpointError("the copy of a checkpoint must be a new or empty folder", value=to)
