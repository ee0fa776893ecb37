"""Resumes queries with added results, which begin empty (``begin_empty`` of `write_stream`)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.planning.added_results import with_rows_since
from gpu_windows.spark_glue.contract.manifest import Manifest
from gpu_windows.spark_glue.streams.outputs import StreamOutputs
from gpu_windows.spark_glue.streams.stages import QueryStage


def resume_manifest(
    outputs: StreamOutputs, last: StateCommit, begin_empty: Collection[str]
) -> Manifest:
    """Return the manifest of a query that resumes from a commit.

    Parameters
    ----------
    outputs : StreamOutputs
    last : StateCommit
        The last one.
    begin_empty : collection of str
        Names of results that may be new and begin empty.

    Raises
    ------
    StateMismatchError
        If the commit is another query's.
    """
    plans = {stage.name: stage.reader.plan for stage in outputs.stages}
    return outputs.manifest.resume(Manifest.from_text(last.facts), plans, begin_empty)


def begin_stage(stage: QueryStage, manifest: Manifest) -> QueryStage:
    """Return a stage whose plan knows which results began at a later start."""
    plan = with_rows_since(stage.reader.plan, manifest.begun.get(stage.name, {}))
    return replace(stage, reader=replace(stage.reader, plan=plan))
