"""Reads, copies and rolls back checkpoints of streaming queries."""

from __future__ import annotations

from os import PathLike

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import FOLDER, CheckpointFiles
from gpu_windows.checkpointing.locations import open_checkpoint
from gpu_windows.checkpointing.state_commit import StageState, StateCommit
from gpu_windows.checkpoints.commits import CommitSummary, read_commits, report_errors_of
from gpu_windows.checkpoints.copies import copy_checkpoint
from gpu_windows.checkpoints.last_commit import (
    describe_stage,
    earlier_stages,
    find_stage,
    read_last_commit,
)
from gpu_windows.checkpoints.open_files import open_all
from gpu_windows.checkpoints.rollback import roll_back
from gpu_windows.checkpoints.summary import (
    CheckpointState,
    Holding,
    ShardState,
    add_up_tables,
    read_shards,
)
from gpu_windows.errors import CheckpointError, StateError
from gpu_windows.spark_glue.contract.progress import to_ticks

__all__ = [
    "CheckpointState",
    "CommitSummary",
    "Holding",
    "ShardState",
    "copy_checkpoint",
    "read_commits",
    "read_state",
    "roll_back",
]

#: Attempts to read the state; each reads a later micro-batch, because the previous was deleted.
_ATTEMPTS = 5


def read_state(checkpoint: str | PathLike[str], *, stage: str | None = None) -> CheckpointState:
    """Return the contents of a streaming query's checkpoint, while the query runs or after.

    They are read from the files of the last commit, without Spark, and nothing is changed. Only
    metadata of state files is read, not their rows.

    Parameters
    ----------
    checkpoint : str or os.PathLike
        Its path or URL, as `gpu_windows.write_stream` was given it. Credentials of a store come
        from the environment.
    stage : str, optional
        Name of an earlier stage of the query; the query's own, the last one, if not given.

    Returns
    -------
    CheckpointState

    Raises
    ------
    CheckpointError
        If there is no such folder, or it is no checkpoint, or one of another query; if the query
        has no such stage; if the files cannot be read, or are deleted before they are.
    StateCorruptedError, StateVersionError
        If a state file cannot be read, or is missing.

    Examples
    --------
    >>> for table in gw.read_state("/checkpoints/minutes").tables:  # doctest: +SKIP
    ...     print(table.table, table.keys, table.size)
    """
    files = open_checkpoint(checkpoint)
    with report_errors_of(files, "readable"):
        commit, found, shards = _read(files, stage)
    return CheckpointState(
        checkpoint=files.root,
        query=describe_stage(commit, found.name),
        batch=None if commit.number < 0 else commit.number,
        watermark=found.watermark,
        next_call=None if commit.next_call_ms is None else to_ticks(commit.next_call_ms),
        stages=earlier_stages(commit),
        tables=add_up_tables(shards),
        shards=shards,
    )


def _read(
    checkpoint: CheckpointFiles, stage: str | None
) -> tuple[StateCommit, StageState, tuple[ShardState, ...]]:
    log = CommitLog(checkpoint.below(FOLDER))
    failure: Exception | None = None
    for _ in range(_ATTEMPTS):
        commit = read_last_commit(log, checkpoint)
        found = find_stage(commit, stage)
        names = (name for shard in found.shards for name in shard.files)
        try:
            with open_all(log.files, names) as files:
                return commit, found, read_shards(files, found.shards)
        except (StateError, OSError) as error:
            if read_last_commit(log, checkpoint).identity == commit.identity:
                raise
            failure = error
    rule = "the query deletes its state faster than it can be read: stop it, or read a copy"
    raise CheckpointError(rule, value=checkpoint.root) from failure
