"""The state of a shard before a micro-batch, after another number of shards cut out of others."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_windows.operators.build import stateful_operator
from gpu_windows.operators.columns.key_groups import group_range, groups_in_log
from gpu_windows.operators.state.files import StateFiles
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.rescaling import Rescaling, count_numbers, write_rescaled
from gpu_windows.planning.plan import Plan
from gpu_windows.spark_glue.packing import shard_count


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
    """
    count = shard_count(plan)
    if len(newest) == count:
        return StateLog(files, newest[shard])
    first, end = group_range(shard, count)
    sources: list[StateLog] = []
    offset = 0
    for old, file in enumerate(newest):
        old_first, old_end = group_range(old, len(newest))
        if file is None or old_first >= end or old_end <= first:
            continue
        source = StateLog(files, file)
        groups = groups_in_log(plan.query.keys, plan.query.shard_keys)
        source.rescaling = Rescaling(first, end, groups, offset, is_first=not sources)
        stateful_operator(plan).restore(source)
        offset += count_numbers(source)
        sources.append(source)
    if not sources:
        return StateLog(files)
    write_rescaled(sources, files, name)
    return StateLog(files, name)
