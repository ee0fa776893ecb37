"""Rows in time become partials before the shuffle of a stream: that must not be seen."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.errors import LatePartialError
from gpu_windows.operators.base import Emission
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.slices.preaggregation import (
    OnTimePreaggregation,
    are_partials,
    split_counts,
)
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.spark_glue.tasks.fragments import join_fragments
from gpu_windows.spark_glue.tasks.packing import from_ipc, pack, shards_of
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.watermarks import ClockWatermarks
from gpu_windows.vocabulary.windows import SlidingEventTimeWindows, TumblingEventTimeWindows
from tests.examples import examples
from tests.operators.slices.tasks import parts_of
from tests.planning.queries import AGGREGATES, SCHEMA, assigners, query, rows_of, tables
from tests.spark_glue.shard import Shard

#: Rows that a shard takes at once.
_ROWS = 32
#: What the watermark that tasks know is more than the true one; None: they know none.
AHEAD = st.sampled_from([None, 0, 1, 7, 40, LONG_MAX])


def streamed(made: WindowQuery, **options: Any) -> WindowPlan:
    made = replace(made, options=Options(device="cpu", shards=1, **options))
    return plan(made, bounded=False, spark=True)


def sent(
    planned: WindowPlan, parts: list[pa.Table], latest: int | None, max_share: float = math.inf
) -> Iterator[pa.Table]:
    """Yield what the tasks that have ``parts`` send on."""
    for part in parts:
        rows = part.select(planned.input_columns)
        stage = OnTimePreaggregation(
            planned, LONG_MIN if latest is None else latest, max_share=max_share
        )
        made = [rows] if latest is None else stage.split(rows)
        for _, message in join_fragments(pack(planned, made, max_bytes=1 << 11)):
            table = from_ipc(message)
            yield from (table.slice(begin, _ROWS) for begin in range(0, len(table), _ROWS))


def given_of(
    planned: WindowPlan, steps: list[tuple[list[pa.Table], int]], ahead: list[int | None]
) -> list[list[Emission]]:
    """Return what a shard gives in each micro-batch: of the rows of some tasks, at a watermark."""
    shard, found, before = Shard(planned), [], LONG_MIN
    for (parts, watermark), more in zip(steps, ahead, strict=True):
        latest = None if more is None else min(before + more, LONG_MAX)
        found.append([*shard.emissions(sent(planned, parts, latest), watermark)])
        before = watermark
    return found


def told(planned: WindowPlan, emissions: list[Emission]) -> tuple[Any, ...]:
    results = [each.results for each in emissions]
    late = [row for each in emissions for row in rows_of(each.late)]
    counters = sum((each.counters for each in emissions), Counters())
    whole = pa.concat_tables([planned.result_schema.empty_table(), *results])
    return rows_of(whole), sorted(late, key=repr), counters


@examples(100)
@given(assigners(), st.lists(tables(), min_size=1, max_size=3), st.data())
def test_whatever_is_known_of_the_watermark_gives_the_same(
    assigner: Any, batches: list[pa.Table], data: st.DataObject
) -> None:
    planned = streamed(query(assigner, arrival_order=("i", "text")))
    watermarks = sorted(data.draw(st.integers(-80, 80)) for _ in batches)
    steps = [
        (parts_of(data, table), watermark)
        for watermark, table in zip(watermarks, batches, strict=True)
    ]
    steps = [*steps, ([], LONG_MAX)]
    ahead = [data.draw(AHEAD) for _ in steps]
    wanted = given_of(planned, steps, [None] * len(steps))
    got = given_of(planned, steps, ahead)
    assert [told(planned, each) for each in got] == [told(planned, each) for each in wanted]


def rows(count: int, keys: int, at: int = 100) -> pa.Table:
    made = [{"key": str(i % keys), "part": 0, "ts": at + i % 10, "i": i} for i in range(count)]
    return pa.Table.from_pylist(made, schema=SCHEMA)


SUM = {"sum_i": AGGREGATES["sum_i"]}
TUMBLING = query(TumblingEventTimeWindows(10), aggregates=SUM, arrival_order=("i",))


def test_only_rows_that_may_be_late_are_sent() -> None:
    planned = streamed(TUMBLING)
    table = pa.concat_tables([rows(500, 5), rows(20, 5, at=90), rows(500, 5)])
    *partials, late = sent(planned, [table], 99, max_share=0.75)
    assert {are_partials(each) for each in partials} == {True}
    assert not are_partials(late)
    assert (late.num_rows, max(late["ts"].to_pylist())) == (20, 99)
    merged, counters = split_counts(planned, pa.concat_tables(partials))
    assert (len(merged), counters) == (5, Counters(rows=1_000))
    assert (counters.locally_aggregated, counters.cpu_batches > 0) == (1_000, True)


def test_partials_that_are_no_smaller_than_their_rows_are_not_sent() -> None:
    planned = streamed(TUMBLING)
    (few,) = sent(planned, [rows(20, 20)], LONG_MIN, max_share=0.75)
    assert not are_partials(few)
    assert few.num_rows == 20


def test_each_batch_is_judged_by_itself() -> None:
    planned = streamed(TUMBLING, batch_rows=100)
    batches = [*rows(100, 100).to_batches(), *rows(100, 2).to_batches()]
    made = OnTimePreaggregation(planned, LONG_MIN).run(pa.Table.from_batches(batches).to_batches())
    assert [are_partials(each) for each in made] == [False, True]


def test_counts_of_calls_ask_for_no_further_shard() -> None:
    planned = plan(replace(TUMBLING, options=Options(device="cpu", shards=50)), bounded=False)
    table = rows(500, 3).select(planned.input_columns)
    (partials,) = OnTimePreaggregation(planned, LONG_MIN).run(table.to_batches())
    assert set(shards_of(planned, partials).tolist()) == set(shards_of(planned, table).tolist())


def test_a_partial_that_is_late_is_an_error() -> None:
    """It cannot be, unless the watermark that a task knew was no upper bound."""
    planned = streamed(query(SlidingEventTimeWindows(20, 10), aggregates=SUM))
    parts = [rows(10, 1)]
    for watermark, is_late in ((118, False), (119, True)):
        shard = Shard(planned)
        assert shard.micro_batch(watermark) == 0
        if is_late:
            with pytest.raises(LatePartialError, match="a window that ends at 120"):
                shard.micro_batch(watermark, *sent(planned, parts, LONG_MIN))
        else:
            emissions = shard.emissions(sent(planned, parts, LONG_MIN), watermark)
            assert sum(len(each.late) for each in emissions) == 0


def test_rows_of_ingestion_time_stay_rows() -> None:
    """Processing time may go back, and nobody before the shuffle knows how far it was."""
    stamped = replace(TUMBLING, watermarks=ClockWatermarks())
    assert streamed(TUMBLING).makes_partials
    assert not plan(stamped, bounded=False, spark=True).makes_partials
    assert plan(stamped, bounded=True).makes_partials
