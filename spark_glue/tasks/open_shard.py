"""The state of a shard before a micro-batch, after another number of shards cut out of others.

The first micro-batch after the start writes the files of the new shards, and its commit names them:
a death before that commit leaves the old shards.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpu_windows.operators.build import stateful_operator
from gpu_windows.operators.columns.key_groups import group_range, groups_in_log
from gpu_windows.operators.state.files import StateFiles
from gpu_windows.operators.state.large_strings import naming_overflow
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.rescaled_file import count_numbers, write_rescaled
from gpu_windows.operators.state.rescaling import Rescaling
from gpu_windows.operators.state_types import state_types
from gpu_windows.planning.plan import Plan
from gpu_windows.spark_glue.tasks.packing import shard_count


def open_shard(
    plan: Plan, files: StateFiles, newest: Sequence[str | None], shard: int, name: str
) -> StateLog:
    """Return the state of a shard.

    Parameters
    ----------
    plan : Plan
    files : StateFiles
    newest : sequence of (str or None)
        The newest state file of each shard of the last commit, of which there may be more or fewer
        than the plan has.
    shard : int
        Of the plan.
    name : str
        For a file, of this attempt only: it is written where there were more shards or fewer.

    Raises
    ------
    StateError
        If the state is not what this query has saved.
    ArrayOverflowError
        If a new number of shards puts too much text together.
    """
    count = shard_count(plan)
    if len(newest) == count:
        return _open(plan, files, newest[shard])
    first, end = group_range(shard, count)
    sources: list[StateLog] = []
    offset = 0
    for old, file in enumerate(newest):
        old_first, old_end = group_range(old, len(newest))
        if file is None or old_first >= end or old_end <= first:
            continue
        source = _open(plan, files, file)
        groups = groups_in_log(plan.query.keys, plan.query.shard_keys)
        source.rescaling = Rescaling(first, end, groups, offset, is_first=not sources)
        stateful_operator(plan).restore(source)
        offset += count_numbers(source)
        sources.append(source)
    if not sources:
        return _open(plan, files, None)
    with naming_overflow():
        write_rescaled(sources, files, name)
    return _open(plan, files, name)


def _open(plan: Plan, files: StateFiles, newest: str | None) -> StateLog:
    """Return a log whose columns are read in the types of a plan."""
    log = StateLog(files, newest)
    log.types = state_types(plan)
    return log
