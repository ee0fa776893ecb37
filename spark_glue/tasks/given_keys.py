"""Given keys of queries that fill gaps, sent to the shards that have their rows.

In a batch they are sent like rows, because which shards a task has is known only after the shuffle;
shards of a stream select their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import Plan, is_plan_of
from gpu_windows.spark_glue.tasks.packing import FRAGMENT_BYTES, pack, shard_count, shards_of

#: Name of the column that is true in given keys, and null in rows.
GIVEN = "__given"
#: Number of the task that sends given keys; greater than those of tasks that send rows.
_SENDER = 1 << 22


def given_keys(plan: Plan) -> pa.Table | None:
    """Return the given keys of a plan, by the names of its columns, or None."""
    if not is_plan_of(plan, WindowQuery) or plan.query.gaps is None:
        return None
    given = plan.query.gaps.given
    return None if given is None else given.table.rename_columns(plan.query.keys)


def with_given_keys(plan: Plan, keys: pa.Table) -> Plan:
    """Return a plan with other given keys, where it has some."""
    assert is_plan_of(plan, WindowQuery), "a query over windows"
    gaps = plan.query.gaps
    assert gaps is not None, "a query that fills gaps"
    assert gaps.given is not None, "a query with given keys"
    table = keys.rename_columns(gaps.given.table.column_names)
    gaps = replace(gaps, given=replace(gaps.given, table=table))
    return replace(plan, query=replace(plan.query, gaps=gaps))


def plan_of_shard(plan: Plan, shard: int) -> Plan:
    """Return the plan with the given keys of a shard."""
    keys = given_keys(plan)
    if keys is None:
        return plan
    own = np.flatnonzero(shards_of(plan, keys) == shard)
    return with_given_keys(plan, keys.take(pa.array(own)))


def plan_of_micro_batch(plan: Plan, newest: Sequence[str | None]) -> Plan:
    """Return the plan without given keys where the state of each shard has them.

    Each save of a shard's state has its given keys, so that they are sent and sought before the
    first one, and after a change of the number of shards.

    Parameters
    ----------
    plan : Plan
    newest : sequence of (str or None)
        The newest state file of each shard of the last commit.
    """
    has_keys = len(newest) == shard_count(plan) and None not in newest
    return plan_of_tasks(plan) if has_keys else plan


def plan_of_tasks(plan: Plan) -> Plan:
    """Return the plan without given keys, for tasks that need none, or get them like rows."""
    keys = given_keys(plan)
    if keys is None:
        return plan
    return with_given_keys(plan, keys.schema.empty_table())  # an empty slice would hold all


@dataclass(frozen=True)
class PackKeys:
    """Packs the given keys of a plan by shard. ``max_bytes``: of a fragment."""

    plan: Plan
    max_bytes: int = FRAGMENT_BYTES

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task."""
        del batches
        keys = given_keys(self.plan)
        assert keys is not None, "a plan with given keys"
        keys = keys.append_column(GIVEN, pa.array(np.ones(len(keys), np.bool_)))
        yield from pack(self.plan, [keys], max_bytes=self.max_bytes, sender=_SENDER)


def split_given(plan: Plan, table: pa.Table) -> tuple[pa.Table | None, pa.Table]:
    """Return the given keys in a table, or None, and the rows."""
    if GIVEN not in table.column_names:
        return None, table
    is_given = pc.fill_null(table.column(GIVEN), False)
    keys = table.filter(is_given).select(plan.query.keys)
    return keys, table.filter(pc.invert(is_given)).drop_columns([GIVEN])
