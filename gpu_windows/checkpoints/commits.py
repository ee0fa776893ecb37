"""The commits in a checkpoint: a query can be rolled back to each of them, or copied there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import FOLDER, CheckpointFiles
from gpu_windows.checkpointing.locations import open_checkpoint
from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.checkpoints.last_commit import read_last_commit
from gpu_windows.checkpoints.spark_part import SparkPart
from gpu_windows.errors import CheckpointError
from gpu_windows.monitoring.progress import BatchMetrics
from gpu_windows.spark_glue.contract.progress import to_ticks


@dataclass(frozen=True)
class CommitSummary:
    """A commit of a checkpoint.

    Parameters
    ----------
    sequence : int
        Of the commits of the checkpoint, from 0 on: 0 is that of the first start.
    lineage : str
        32 hex digits, which change when a query is rolled back or copied.
    batch : int, optional
        Spark's number of the micro-batch; None before the first one.
    planned : int, optional
        When Spark planned it, in ticks (microseconds since 1970).
    rows : int
        Number of its input rows.
    result_files, result_bytes : int
        Files of staged results, and the bytes of their blobs.
    is_delivered : bool
        Whether delivery of the results to the sink was recorded.
    state_files, state_bytes : int
        State files that it needs, and the bytes of the live blobs in them.
    is_last : bool
        Whether it is the newest one, which a start resumes.
    can_resume : bool
        Whether Spark still has what it needs to resume from it: see
        `gpu_windows.checkpoints.roll_back`.

    Examples
    --------
    >>> commits = gw.read_commits("/checkpoints/minutes")  # doctest: +SKIP
    >>> [commit.sequence for commit in commits if commit.can_resume]  # doctest: +SKIP
    """

    sequence: int
    lineage: str
    batch: int | None
    planned: int | None
    rows: int
    result_files: int
    result_bytes: int
    is_delivered: bool
    state_files: int
    state_bytes: int
    is_last: bool
    can_resume: bool


def read_commits(checkpoint: str | PathLike[str]) -> tuple[CommitSummary, ...]:
    """Return the commits in a checkpoint, the newest last, while its query runs or after.

    They are read without Spark, and nothing is changed. The parameter ``keep`` of
    `gpu_windows.write_stream` sets their number.

    Parameters
    ----------
    checkpoint : str or os.PathLike
        Its path or URL, as `gpu_windows.write_stream` was given it. Credentials of a store come
        from the environment.

    Returns
    -------
    tuple of CommitSummary
        At least one.

    Raises
    ------
    CheckpointError
        If there is no such folder, or it is no checkpoint, or one of another query, or cannot be
        read.
    StateCorruptedError, StateVersionError
        If a commit cannot be read.

    Examples
    --------
    >>> import gpu_windows as gw
    >>> for commit in gw.read_commits("checkpoint"):  # doctest: +SKIP
    ...     print(commit.sequence, commit.batch, commit.rows)
    """
    files = open_checkpoint(checkpoint)
    with report_errors_of(files):
        log, commits = open_commits(files)
        spark = SparkPart(files)
        return tuple(_summarize(log, spark, each, commits[-1]) for each in commits)


def open_commits(checkpoint: CheckpointFiles) -> tuple[CommitLog, list[StateCommit]]:
    """Return the commits of a checkpoint, at least one.

    Raises
    ------
    CheckpointError, StateCorruptedError, StateVersionError
        See `read_commits`.
    """
    log = CommitLog(checkpoint.below(FOLDER))
    last = read_last_commit(log, checkpoint)
    return log, log.read_all() or [last]


def find_commit(commits: list[StateCommit], sequence: int) -> StateCommit:
    """Return the commit with a sequence.

    Raises
    ------
    CheckpointError
        If there is none of this sequence.
    """
    for commit in commits:
        if commit.sequence == sequence:
            return commit
    sequences = ", ".join(str(each.sequence) for each in commits)
    raise CheckpointError(f"the commit must be one that is kept: {sequences}", value=sequence)


@contextmanager
def report_errors_of(checkpoint: CheckpointFiles, must: str = "accessible") -> Iterator[None]:
    """Raise `CheckpointError` for files that this process cannot read or change: they must be."""
    try:
        yield
    except OSError as error:
        rule = f"the files of a checkpoint must be {must}: {error.strerror}"
        raise CheckpointError(rule, value=error.filename or checkpoint.root) from error


def _summarize(
    log: CommitLog, spark: SparkPart, commit: StateCommit, last: StateCommit
) -> CommitSummary:
    is_first = commit.number < 0
    shards = [shard for stage in commit.stages for shard in stage.shards]
    return CommitSummary(
        sequence=commit.sequence,
        lineage=commit.lineage,
        batch=None if is_first else commit.number,
        planned=None if is_first else to_ticks(commit.planned_ms),
        rows=commit.rows,
        result_files=len(commit.results),
        result_bytes=sum(size for each in commit.results for _, size in each.sizes),
        is_delivered=not commit.results or log.is_delivered(commit),
        state_files=sum(len(shard.files) for shard in shards),
        state_bytes=_state_bytes(commit),
        is_last=commit.identity == last.identity,
        can_resume=commit.number <= last.number and spark.can_resume(commit),
    )


def _state_bytes(commit: StateCommit) -> int:
    if not commit.metrics:
        return 0
    metrics = BatchMetrics.from_json(commit.metrics[-1])
    return metrics.state_bytes + sum(each.state_bytes for each in metrics.stages.values())
