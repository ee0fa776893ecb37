"""Resumes a query from the last commit of its checkpoint; refuses folders that are not that."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import FOLDER, CheckpointFiles
from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.commits.records import is_identity
from gpu_windows.errors import StateCorruptedError, StateMismatchError
from gpu_windows.planning.added_results import with_rows_since
from gpu_windows.spark_glue.contract.manifest import Manifest
from gpu_windows.spark_glue.streams.outputs import StreamOutputs
from gpu_windows.spark_glue.streams.spark_offsets import is_ahead
from gpu_windows.spark_glue.streams.stages import QueryStage


def read_resumed_commit(log: CommitLog, files: CheckpointFiles) -> StateCommit | None:
    """Return the last commit of a checkpoint; None if it is new.

    Parameters
    ----------
    log : CommitLog
    files : CheckpointFiles
        Of the whole checkpoint.

    Raises
    ------
    StateMismatchError
        If other files are there; if a rollback did not end; if Spark's part is ahead of the last
        commit.
    StateCorruptedError, StateVersionError
        If the commit cannot be read.
    """
    try:
        entries = files.entries() or []
    except NotADirectoryError as error:
        raise _other_files_error("other files", files.root) from error
    last = log.last()
    if last is not None:
        if not is_identity(last.lineage):  # it goes to tables, topics and SQL
            rule = "the lineage in a commit is 32 hex digits"
            raise StateCorruptedError(rule, value=repr(last.lineage[:100]))
        if not log.is_complete(last):
            raise _back_again_error("`gpu-windows checkpoint back` did not end", last, files.root)
        if is_ahead(files, last):
            rule = "Spark's part of the checkpoint is ahead of the last commit: another query ran"
            raise _back_again_error(rule, last, files.root)
        return last
    others = [name for name in entries if name != FOLDER]  # a first start may have died
    if not others:
        return None
    contents = "other files"
    if {"metadata", "offsets"}.intersection(others):
        contents = (
            "a streaming query that write_stream did not start, or one whose commits are gone, as "
            "in a copy that did not end"
        )
    raise _other_files_error(contents, f"{files.root}/{others[0]}")


def resume_stages(
    outputs: StreamOutputs, last: StateCommit | None, begin_empty: Collection[str]
) -> tuple[tuple[QueryStage, ...], Manifest]:
    """Return the stages and the manifest of a query that resumes from a commit, if there is one.

    The plans know which results were added at a later start, and began empty.

    Parameters
    ----------
    outputs : StreamOutputs
    last : StateCommit, optional
        The last one.
    begin_empty : collection of str
        Names of results that may be new and begin empty.

    Raises
    ------
    StateMismatchError
        If the commit is another query's.
    """
    if last is None:
        return outputs.stages, outputs.manifest
    plans = {stage.name: stage.reader.plan for stage in outputs.stages}
    manifest = outputs.manifest.resume(Manifest.from_text(last.facts), plans, begin_empty)
    stages = []
    for stage in outputs.stages:
        plan = with_rows_since(plans[stage.name], manifest.begun.get(stage.name, {}))
        stages.append(replace(stage, reader=replace(stage.reader, plan=plan)))
    return tuple(stages), manifest


def _back_again_error(rule: str, last: StateCommit, root: str) -> StateMismatchError:
    rule += (
        ". Stop all queries on it and run `gpu-windows checkpoint back` (again, with the same "
        f"--output) to commit {last.sequence}"
    )
    return StateMismatchError(rule, value=root)


def _other_files_error(contents: str, path: str) -> StateMismatchError:
    rule = (
        "a checkpoint must be a new folder, or one that write_stream has begun: choose another "
        f"folder, this one has {contents}"
    )
    return StateMismatchError(rule, value=path)
