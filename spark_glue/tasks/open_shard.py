"""Opens the state of a shard, split or merged from other shards if their number has changed.

The first micro-batch after such a start writes the files of the new shards, and its commit names
them: a crash before that commit leaves the old shards as they were.
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
    """Return the state of a shard before a micro-batch.

    Parameters
    ----------
    plan : Plan
    files : StateFiles
    newest : sequence of (str or None)
        The newest state file of each shard of the last commit, which may have had more or fewer
        shards than the plan.
    shard : int
        Of the plan.
    name : str
        Of the file, unique to this attempt, that is written if the number of shards has changed.

    Raises
    ------
    StateError
        If the state is not this query's.
    ArrayOverflowError
        If a merged shard would have more than 2 GiB of text in a column.
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
