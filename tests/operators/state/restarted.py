"""A query that is started again with more results, on other shards or as many, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pyarrow as pa

from gpu_windows.operators.state.files import MemoryFiles
from gpu_windows.planning.added_results import (
    Since,
    facts_without,
    find_added,
    record_added,
    with_rows_since,
)
from gpu_windows.planning.facts import facts_of
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.planning.query import Query
from gpu_windows.spark_glue.tasks.open_shard import open_shard
from gpu_windows.spark_glue.tasks.packing import assign_shards
from gpu_windows.spark_glue.tasks.shard_run import ShardRun

Rows = Sequence[dict[str, Any]]


class Restarted:
    """A query from start to start.

    Parameters
    ----------
    query : Query
        Of the first start.
    shards : int
    """

    def __init__(self, query: Query, shards: int = 2) -> None:
        self.files = MemoryFiles()
        self.newest: list[str | None] = []
        self.since: Since = {}
        self._planned = self._plan(query, shards)
        self.plan = self._planned

    def start(self, query: Query, shards: int = 2) -> list[str]:
        """Start another query on the state; return which of its results begin empty."""
        planned, facts = self._plan(query, shards), facts_of(self._planned)
        added = find_added(facts["results"], planned)
        if added:
            assert facts_without(planned, added) == facts
            self.since = record_added(self.since, added)
        self._planned, self.plan = planned, with_rows_since(planned, self.since)
        return added

    def micro_batch(self, rows: Rows, watermark: int) -> list[dict[str, Any]]:
        """Return the results of all shards."""
        query = self.plan.query
        schema = pa.schema([query.schema.field(name) for name in self.plan.input_columns])
        named = [{name: row[name] for name in schema.names} for row in rows]
        table, numbers = assign_shards(self.plan, pa.Table.from_pylist(named, schema=schema))
        shards = query.options.shards or 1
        results: list[dict[str, Any]] = []
        newest: list[str | None] = []
        for shard in range(shards):
            before = self.newest or [None] * shards
            log = open_shard(self.plan, self.files, before, shard, uuid4().hex)
            run = ShardRun(self.plan, log, 0)
            own = table.filter(pa.array(numbers == shard))
            for emission in run.emissions([own] if len(own) else [], lambda: watermark):
                results += emission.results.to_pylist()
            run.finish(uuid4().hex)
            newest.append(log.newest)
        self.newest = newest
        return results

    @staticmethod
    def _plan(query: Query, shards: int) -> Plan:
        options = replace(query.options, shards=shards)
        return plan(replace(query, options=options), bounded=False, spark=True)
