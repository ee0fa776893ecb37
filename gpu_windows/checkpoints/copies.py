"""Copies a checkpoint as it was after a commit.

Spark's part is written first, so that a start does not take the folder for a new one; the commit is
written last, so that a start refuses an incomplete copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from errno import ENOENT
from os import PathLike
from uuid import uuid4

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import FOLDER, CheckpointFiles
from gpu_windows.checkpointing.locations import open_checkpoint
from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.checkpoints.commits import find_commit, open_commits, report_errors_of
from gpu_windows.checkpoints.open_files import OpenFiles, open_all
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

    The copy is the checkpoint of another query, which resumes after the commit: it has another
    lineage and another id, so both may run at once, and a path of results accepts only one of them.
    Results up to the commit are not delivered to the sink of the copy.

    Parameters
    ----------
    checkpoint : str or os.PathLike
        Its path or URL, as `gpu_windows.write_stream` was given it. Nothing in it is changed.
        Credentials of a store come from the environment.
    sequence : int
        Of the commit, one of `gpu_windows.read_commits`.
    target : str or os.PathLike
        Path or URL of the copy, in this store or another one: a new folder, or an empty one.

    Raises
    ------
    CheckpointError
        If there is no such checkpoint or commit; if Spark, which keeps 100 micro-batches, has
        removed what it noted of the commit's, or has noted others since; if Spark keeps state of
        steps before ours; if the target is not empty, or its store replaces what exists; if files
        cannot be read or written; if the query deletes what the commit needs meanwhile.
    StateCorruptedError, StateVersionError
        If a commit cannot be read.

    Examples
    --------
    >>> from gpu_windows import checkpoints
    >>> checkpoints.copy_checkpoint("checkpoint", 41, "checkpoint-of-tests")  # doctest: +SKIP
    """
    files, to = open_checkpoint(checkpoint), open_checkpoint(target)
    with report_errors_of(files):
        log, commits = open_commits(files)
        commit = find_commit(commits, sequence)
        spark = SparkPart(files)
        spark.check_has_no_state()
        spark.check_can_resume(commit)
        _check_target(to, files)
        try:
            _copy(log, commit, spark, to)
        except FileNotFoundError as error:
            rule = (
                "the files that the commit needs must stay while they are copied: the query has "
                "deleted some. Delete the copy, if there is one, and copy a later commit, or have "
                "the query keep more of them (keep=)"
            )
            raise CheckpointError(rule, value=f"commit {sequence}: {error.filename}") from error


def _copy(log: CommitLog, commit: StateCommit, spark: SparkPart, to: CheckpointFiles) -> None:
    of_spark = _read_spark_part(spark, commit)
    with open_all(log.files, commit.files) as files:
        _check_closed(files, commit.files)
        own = to.below(FOLDER)
        own.check_create()
        for name, data in of_spark.items():
            to.write(name, [data])
        for name in sorted(commit.files):
            own.write(name, _read_blocks(files, name))
    first = commit.begin_lineage(sequence=commit.sequence)
    CommitLog(own).mark_delivered(first)
    if not own.create(log.name(first), first.as_bytes):
        raise _target_error(to)


def _check_closed(files: CheckpointFiles, names: Iterable[str]) -> None:
    """Raise `FileNotFoundError` if a file that could not be opened, of too many, is missing."""
    opened = files.handles if isinstance(files, OpenFiles) else {}
    for name in sorted(names):
        if name not in opened and not files.exists(name):
            raise FileNotFoundError(ENOENT, "it was deleted", f"{files.root}/{name}")


def _read_spark_part(spark: SparkPart, commit: StateCommit) -> dict[str, bytes]:
    """Return Spark's files by name, ``metadata`` first."""
    names = spark.files_until(commit.number)
    data = {}
    if commit.number >= 0 or spark.files.exists(_METADATA):
        data[_METADATA] = _UUID.sub(str(uuid4()).encode(), spark.files.read(_METADATA))
    return data | {name: spark.files.read(name) for name in names}


def _read_blocks(files: CheckpointFiles, name: str) -> Iterator[bytes]:
    with files.open(name) as file:
        while block := file.read(_BLOCK_BYTES):
            yield block


def _check_target(to: CheckpointFiles, checkpoint: CheckpointFiles) -> None:
    """Raise `CheckpointError` unless the target is new or empty, and elsewhere."""
    if checkpoint.holds(to):
        raise CheckpointError("the copy of a checkpoint must be outside of it", value=to.root)
    try:
        entries = to.entries() or []
    except NotADirectoryError as error:
        raise _target_error(to) from error
    if _METADATA in entries and not to.below(FOLDER).names("commits"):
        rule = "an incomplete copy must be deleted before it is made again"
        raise CheckpointError(rule, value=to.root)
    if entries:
        raise _target_error(to)


def _target_error(to: CheckpointFiles) -> CheckpointError:
    rule = "the copy of a checkpoint must be a new or empty folder"
    return CheckpointError(rule, value=to.root)
