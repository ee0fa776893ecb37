"""What gives the rows of outputs: the local runner, a shard of a stream, Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from gpu_windows.planning.own_columns import NO_KEY
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.runners.local import batches_for, with_timestamps
from tests.spark_glue.shard import Shard


def here(outputs: Any) -> pa.Table:
    """Return what the local runner gives."""
    return outputs.result()


def on_a_shard(outputs: Any, rows: int = 1) -> pa.Table:
    """Return what a shard of a stream gives in micro-batches of some rows, whose state is read."""
    planned = plan(outputs.plan.query, bounded=False, spark=True)
    shard, found = Shard(planned), []
    for table in batches_for(planned, outputs.data):
        for at in range(0, len(table), rows):
            found += [*shard.emissions([table.slice(at, rows)])]
    found += [*shard.emissions([], LONG_MAX)]
    given = pa.concat_tables([with_timestamps(planned, each.results) for each in found])
    return given.drop_columns([name for name in given.column_names if name == NO_KEY])


def on_spark(outputs: Any) -> pa.Table:
    """Return what the batch runner gives."""
    return outputs.result().toArrow()
