"""The slices strategy gives what the reference gives, however the input is cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows import rules
from gpu_windows.operators.base import Emission, Operator
from gpu_windows.operators.build import build_operator
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.slices import operator as slices
from gpu_windows.operators.slices.operator import SlicesOperator
from gpu_windows.operators.slices.preaggregation import Preaggregation, split_counts
from gpu_windows.planning.plan import Plan, Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.runners import local
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.windows import SlidingEventTimeWindows, TumblingEventTimeWindows
from tests.examples import examples
from tests.operators.slices.tasks import parts_of, through_tasks, with_arrival
from tests.planning.queries import SCHEMA, assigners, query, rows_of, tables


def emissions(operator: Operator, steps: list[pa.Table | int]) -> list[Emission]:
    found: list[Emission] = []
    for step in steps:
        if isinstance(step, int):
            found += operator.advance_watermark(step)
        else:
            found += operator.process(step)
    return found


def results(planned: Plan, found: list[Emission]) -> pa.Table:
    nothing = planned.result_schema.empty_table()
    return pa.concat_tables([nothing, *(emission.results for emission in found)])


def both(made: Any, *, bounded: bool) -> tuple[Plan, Plan]:
    reference = query(made.assigner, options=Options(engine="reference"))
    planned = plan(made, bounded=bounded)
    assert planned.strategy is Strategy.SLICES
    return planned, plan(reference, bounded=bounded)


@examples(100)
@given(assigners(), tables(), st.data())
def test_slices_equal_reference_under_watermarks(
    assigner: Any, table: pa.Table, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=4)))
    table = with_arrival(table)
    edges = [0, *cuts, len(table)]
    steps: list[pa.Table | int] = []
    for begin, end in pairwise(edges):
        steps += [table.slice(begin, end - begin), data.draw(st.integers(-80, 80))]
    steps.append(LONG_MAX)
    mine, reference = both(query(assigner), bounded=False)
    got = emissions(build_operator(mine), steps)
    wanted = emissions(build_operator(reference), steps)
    assert rows_of(results(mine, got)) == rows_of(results(reference, wanted))
    assert sum((e.counters for e in got), Counters()) == sum(
        (e.counters for e in wanted), Counters()
    )
    late = [row for e in got for row in rows_of(e.late)]
    assert sorted(late, key=repr) == sorted(
        [row for e in wanted for row in rows_of(e.late)], key=repr
    )


@examples(100)
@given(assigners(), tables(), st.data())
def test_any_split_over_tasks_and_shards_gives_the_same(
    assigner: Any, table: pa.Table, data: st.DataObject
) -> None:
    made = query(assigner)
    planned = plan(made, bounded=True, spark=False)
    got, counters = through_tasks(planned, parts_of(data, with_arrival(table)))
    whole = local.run(planned, table)
    assert rows_of(got) == rows_of(whole.results)
    assert counters == whole.counters


@examples(50)
@given(assigners(), tables(exact=True), st.integers(1, 7))
def test_batches_of_the_input_do_not_matter(assigner: Any, table: pa.Table, rows: int) -> None:
    planned = plan(query(assigner), bounded=True)
    whole = local.run(planned, table).results
    cut = local.run(
        plan(query(assigner, options=Options(batch_rows=rows)), bounded=True),
        pa.Table.from_batches(table.to_batches(max_chunksize=rows), schema=table.schema),
    )
    assert rows_of(cut.results, digits=15) == rows_of(whole, digits=15)


def test_rows_sent_without_aggregation_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_windows.operators.slices.preaggregation._TRIAL_ROWS", 10)
    rows = [
        {"key": str(i), "part": None, "ts": i, "i": i, "f": None if i % 3 else i / 2}
        for i in range(50)
    ]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    made = query(SlidingEventTimeWindows(7, 2), options=Options(device="cpu", batch_rows=10))
    planned = plan(made, bounded=True)
    stage = Preaggregation(planned)
    batches = with_arrival(table).to_batches(max_chunksize=10)
    final = SlicesOperator(planned, Kernels("cpu"))
    for partials in stage.run(batches):
        final.merge(split_counts(planned, partials)[0])
    assert not stage._aggregating
    got = results(planned, list(final.advance_watermark(LONG_MAX)))
    assert rows_of(got) == rows_of(local.run(planned, table).results)


def test_emissions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "EMISSION_WINDOWS", 100)
    table = pa.Table.from_pylist(
        [{"key": "a", "part": 1, "ts": ts} for ts in range(0, 3_000, 40)], schema=SCHEMA
    )
    planned = plan(query(SlidingEventTimeWindows(50, 1)), bounded=True)
    operator = build_operator(planned)
    list(operator.process(with_arrival(table)))
    parts = [e.results for e in operator.advance_watermark(LONG_MAX)]
    assert len(parts) > 10
    assert max(map(len, parts)) <= 200
    ends = pa.concat_tables(parts).column("window_end").to_pylist()
    assert ends == sorted(ends)
    assert len(ends) == 3_000 - 40 + 50


def test_emissions_are_bounded_in_spite_of_an_outlier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "EMISSION_WINDOWS", 100)
    times = [-(10**12), *range(0, 3_000, 40)]
    table = pa.Table.from_pylist([{"key": "a", "part": 1, "ts": ts} for ts in times], schema=SCHEMA)
    operator = build_operator(plan(query(SlidingEventTimeWindows(50, 1)), bounded=True))
    list(operator.process(with_arrival(table)))
    sizes = [len(e.results) for e in operator.advance_watermark(LONG_MAX)]
    assert max(sizes) <= 100
    assert sum(sizes) == 50 + 3_000 - 40 + 50


def test_the_earliest_timestamps_are_no_sentinels() -> None:
    assigner = TumblingEventTimeWindows(1)
    planned = plan(query(assigner), bounded=True)
    first = rules.earliest_unit(assigner.grid())
    rows = [{"key": "a", "ts": ts} for ts in (first, first + 1, first - 1, 0)]
    table = with_arrival(pa.Table.from_pylist(rows, schema=SCHEMA))
    counters = Counters()
    final = SlicesOperator(planned, Kernels("cpu"))
    for partials in Preaggregation(planned).run(table.to_batches()):
        used, counted = split_counts(planned, partials)
        counters += counted
        final.merge(used)
    assert counters == Counters(rows=4, out_of_range_timestamp=1)
    assert len(results(planned, list(final.advance_watermark(LONG_MAX)))) == 3


def test_state_is_dropped_with_its_last_window() -> None:
    planned = plan(query(TumblingEventTimeWindows(10)), bounded=False)
    operator = SlicesOperator(planned, Kernels("cpu"))
    table = pa.Table.from_pylist([{"key": "a", "ts": ts} for ts in (1, 11, 25)], schema=SCHEMA)
    list(operator.process(with_arrival(table)))
    list(operator.advance_watermark(19))
    assert len(operator._table.entries()) == 1
    list(operator.advance_watermark(LONG_MAX))
    assert len(operator._table.entries()) == 0


@examples(25)
@given(st.integers(1, 10**6), st.integers(1, 10**6), tables(most=15))
def test_slides_of_any_ratio_stay_cheap(size: int, slide: int, table: pa.Table) -> None:
    assigner = SlidingEventTimeWindows(max(size, slide), max(slide, size // 500))
    mine, reference = both(query(assigner), bounded=True)
    assert rows_of(local.run(mine, table).results) == rows_of(local.run(reference, table).results)


@pytest.mark.parametrize("batch_rows", [1, 100, 1 << 17])
def test_threads_change_nothing(batch_rows: int) -> None:
    rng = np.random.default_rng(7)
    ticks = pa.array(
        rng.integers(0, 600_000_000, 4_000), mask=rng.random(4_000) < 0.01, type=pa.int64()
    )
    table = pa.table(
        {
            "ts": ticks.cast(pa.timestamp("us", "UTC")),
            "k": rng.integers(0, 9, 4_000),
            "v": rng.normal(size=4_000),
        }
    )
    strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
    keyed = gw.stream(table).event_time("ts", strategy).key_by("k")
    windowed = keyed.window(gw.SlidingEventTimeWindows.of("1 minute", "20 seconds"))
    one, three = (
        windowed.options(threads=threads, batch_rows=batch_rows)
        .with_outputs()
        .aggregate(n=gw.count(), s=gw.sum("v"), first=gw.first("v"), sd=gw.stddev("v"))
        for threads in (1, 3)
    )
    assert three.result().equals(one.result())
    assert three.rejected().equals(one.rejected())
    assert len(one.rejected()) > 0
    columns = ["rows", "null_timestamp", "fired"]
    assert three.metrics().select(columns).equals(one.metrics().select(columns))
