"""Results that begin empty at a start: whether they may, and the plans of stages with them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.planning.added_results import with_rows_since
from gpu_windows.spark_glue.contract.manifest import Manifest
from gpu_windows.spark_glue.streams.outputs import StreamOutputs
from gpu_windows.spark_glue.streams.stages import StageOfQuery


def resume_manifest(
    outputs: StreamOutputs, last: StateCommit, begin_empty: Collection[str]
) -> Manifest:
    """Return the manifest of a query that goes on from a commit.

    Parameters
    ----------
    outputs : StreamOutputs
    last : StateCommit
        The last one.
    begin_empty : collection of str
        Names of results that may begin empty if they are new.

    Raises
    ------
    StateMismatchError
        If the commit is another query's.
    """
    plans = {stage.name: stage.reader.plan for stage in outputs.stages}
    return outputs.manifest.resume(Manifest.from_text(last.facts), plans, begin_empty)


def begin_stage(stage: StageOfQuery, manifest: Manifest) -> StageOfQuery:
    """Return a stage of a query whose results that began later have rows from then on."""
    plan = with_rows_since(stage.reader.plan, manifest.begun.get(stage.name, {}))
    return replace(stage, reader=replace(stage.reader, plan=plan))
