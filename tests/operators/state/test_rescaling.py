"""Another number of shards: every table of an operator goes to the shard of its keys, or to all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import NameClashError
from gpu_windows.functions.two_inputs import COPY, SIDE, TIME
from gpu_windows.operators.columns.key_groups import (
    GROUP_COUNT,
    group_range,
    shards_of_groups,
)
from gpu_windows.operators.state.files import MemoryFiles
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.planning.query import Query
from gpu_windows.spark_glue.tasks.open_shard import open_shard
from gpu_windows.spark_glue.tasks.packing import assign_shards
from gpu_windows.spark_glue.tasks.shard_run import ShardRun
from tests.operators.process.functions import LONG, TEXT, Limits

MONOTONOUS = gw.WatermarkStrategy.for_monotonous_timestamps()


class Rescaled:
    """A query whose number of shards is another one in each micro-batch.

    Parameters
    ----------
    query : Query
    """

    def __init__(self, query: Query) -> None:
        self._query, self._files = query, MemoryFiles()
        self._newest: list[str | None] = []

    def micro_batch(
        self, shards: int, rows: Sequence[dict[str, Any]], watermark: int
    ) -> list[dict[str, Any]]:
        """Return the results of all shards."""
        planned = self._plan(shards)
        schema = pa.schema([planned.query.schema.field(name) for name in planned.input_columns])
        table, numbers = assign_shards(planned, pa.Table.from_pylist([*rows], schema=schema))
        results: list[dict[str, Any]] = []
        newest: list[str | None] = []
        for shard in range(shards):
            before = self._newest or [None] * shards
            log = open_shard(planned, self._files, before, shard, uuid4().hex)
            run = ShardRun(planned, log, 0)
            own = table.filter(pa.array(numbers == shard))
            for emission in run.emissions([own] if len(own) else [], lambda: watermark):
                results += emission.results.to_pylist()
            run.finish(uuid4().hex)
            newest.append(log.newest)
        self._newest = newest
        return results

    def _plan(self, shards: int) -> Plan:
        options = replace(self._query.options, shards=shards)
        return plan(replace(self._query, options=options), bounded=False, spark=True)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 200, GROUP_COUNT])
def test_shards_are_ranges_of_groups(count: int) -> None:
    ends = [group_range(shard, count) for shard in range(count)]
    assert [first for first, _ in ends] == [0, *(end for _, end in ends[:-1])]
    assert ends[-1][1] == GROUP_COUNT
    for shard, (first, end) in enumerate(ends):
        assert {*shards_of_groups(pa.array([first, end - 1]).to_numpy(), count).tolist()} == {shard}


@pytest.mark.parametrize("key", ["k", "state", "limits key", "limits value"])
def test_every_shard_has_the_broadcast_state(key: str) -> None:
    """Whatever the key is called: its column may have the name of one of the maps' columns."""
    keyed = pa.schema([(key, TEXT), ("ts", LONG), ("v", LONG)])
    limits = pa.schema([("name", TEXT), ("at", LONG), ("limit", LONG)])
    function = Limits()
    left = gw.stream(keyed.empty_table()).event_time("ts", MONOTONOUS).key_by(key)
    right = gw.stream(limits.empty_table()).event_time("at", MONOTONOUS).broadcast()
    made = (
        left.connect(right)
        .with_outputs()
        .process(function, ["v"], ["name", "limit"], output=function.output)
    )
    query = Rescaled(made.plan.query)
    sent = [
        {COPY: False, SIDE: False, TIME: at, "__broadcast_name": name, "__broadcast_limit": limit}
        for name, at, limit in (("x", 1, 8), ("y", 1, 20))
    ]
    query.micro_batch(4, sent, 0)
    rows = [{COPY: False, SIDE: True, key: each, TIME: 5, "__keyed_v": 3} for each in "abcdefghij"]
    found = [query.micro_batch(shards, rows, 1) for shards in (4, 6, 3, 1, 5)]
    assert len(found[0]) == len(rows)
    views = [sorted(str([*row.values()][1:]) for row in each) for each in found]
    assert all(each == views[0] for each in views)


@pytest.mark.parametrize("name", ["__group", "__piece", "__status", "__hash", "__event"])
def test_columns_of_ours_are_reserved(name: str) -> None:
    table = pa.table({"k": ["a"], "ts": [1], name: [1]})
    with pytest.raises(NameClashError, match=name):
        gw.stream(table).event_time("ts", MONOTONOUS).key_by("k").window(
            gw.TumblingEventTimeWindows(10)
        ).with_outputs().aggregate(values=gw.collect_list(name))
