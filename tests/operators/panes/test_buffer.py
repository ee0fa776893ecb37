"""The buffer strategy gives what the reference gives, for every built-in combination."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.errors import (
    ColumnTypeError,
    OperatorFailedError,
    QueryError,
)
from gpu_windows.operators.build import build_operator
from gpu_windows.operators.panes.operator import BufferOperator
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.own_columns import REASON
from gpu_windows.planning.plan import Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.runners import local
from gpu_windows.vocabulary.deltas import Delta
from gpu_windows.vocabulary.evictors import CountEvictor
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.triggers import (
    CountTrigger,
    DeltaTrigger,
    EventTimeTrigger,
    ProcessingTimeoutTrigger,
    PurgingTrigger,
    Trigger,
)
from gpu_windows.vocabulary.windows import (
    EventTimeSessionWindows,
    GlobalWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from tests.examples import examples
from tests.lanes import quick
from tests.operators.panes.queries import WITH_GAP, Step, ends, inputs, ordered, queries, run
from tests.planning.queries import SCHEMA, counters_of, query, rows_of, tables

WINDOW = ("window_start", "window_end")


@examples(200)
@given(queries(), inputs())
def test_every_combination_equals_the_reference(made: WindowQuery, steps: list[Step]) -> None:
    planned = plan(made, bounded=False)
    operator = build_operator(planned, trace=True)
    if planned.strategy is not Strategy.BUFFER:
        reject()
    reference = plan(replace(made, options=Options(engine="reference")), bounded=False)
    wanted = run(build_operator(reference, trace=True), steps)
    for number, (got, expected) in enumerate(zip(run(operator, steps), wanted, strict=True)):
        assert _in_one_order(got[0]) == _in_one_order(expected[0]), (number, steps[number][0])
        assert got[1:] == expected[1:], (number, steps[number][0])
    assert not (ends(made, steps) and any(operator.state_size().values()))


def test_a_timeout_within_a_timeout_shares_its_state() -> None:
    """As in Flink, where state goes by its name: the inner one starts, the outer one does not."""
    inner = ProcessingTimeoutTrigger(EventTimeTrigger(), 2, clear_on_timeout=False)
    made = query(TumblingEventTimeWindows(9), WITH_GAP, trigger=ProcessingTimeoutTrigger(inner, 1))
    row = pa.Table.from_pylist([{"key": "a", "ts": 5, "i": 1, "gap": 1}], schema=WITH_GAP)
    times = [("processing_time", time) for time in (1, 2)]
    steps: list[Step] = [("rows", row), *times, ("watermark", LONG_MAX)]
    operator = build_operator(plan(made, bounded=False), trace=True)
    reference = plan(replace(made, options=Options(engine="reference")), bounded=False)
    found = [*run(operator, steps)]
    assert found == [*run(build_operator(reference, trace=True), steps)]
    assert [len(results) for results, _, _ in found] == [0, 0, 1, 0]


def test_a_trigger_of_very_many_triggers_runs_row_at_a_time() -> None:
    trigger: Trigger = CountTrigger(3)
    for _ in range(61):
        trigger = PurgingTrigger(trigger)
    assert plan(query(GlobalWindows(), trigger=trigger), bounded=True).strategy is Strategy.BUFFER
    more = plan(query(GlobalWindows(), trigger=PurgingTrigger(trigger)), bounded=True)
    assert more.strategy is Strategy.ROW_AT_A_TIME
    assert "made of 63 triggers" in more.reasons[0]


def test_a_bad_gap_leaves_the_state_as_it_was() -> None:
    made = query(EventTimeSessionWindows(0, "gap"), WITH_GAP)
    operator = build_operator(plan(made, bounded=False))
    rows = [{"key": "a", "ts": 5, "gap": gap} for gap in (10, 0)]
    good, bad = (pa.Table.from_pylist([row], schema=WITH_GAP) for row in rows)
    [*operator.process(good)]
    (given_back,) = operator.process(bad)
    assert given_back.late[REASON].to_pylist() == ["invalid_session_gap"]
    assert sum(len(e.results) for e in operator.advance_watermark(LONG_MAX)) == 1


def test_an_operator_whose_call_did_not_end_is_not_used_again() -> None:
    operator = build_operator(plan(query(GlobalWindows(), trigger=CountTrigger(1)), bounded=False))
    row = pa.Table.from_pylist([{"key": "a", "ts": 5}], schema=SCHEMA)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpu_windows.operators.panes.results.result_columns", None)
        with pytest.raises(TypeError):
            [*operator.process(row)]
    with pytest.raises(OperatorFailedError):
        [*operator.process(row)]


def test_gaps_of_other_units_and_unsigned_numbers() -> None:
    gap = pa.field("gap", pa.duration("ms"))
    rows = [{"key": "a", "ts": ts, "gap": 1} for ts in (0, 500, 2_000)]
    schema = SCHEMA.append(gap)
    table = pa.Table.from_pylist(rows, schema=schema)
    bounds = []
    for options in (Options(device="cpu"), Options(engine="reference")):
        made = query(
            EventTimeSessionWindows(0, "gap"), schema, trigger=CountTrigger(1), options=options
        )
        results = local.run(plan(made, bounded=True), table).results
        bounds.append([*zip(*(results[n].to_pylist() for n in WINDOW), strict=True)])
    assert bounds == [[(0, 1_000), (0, 1_500), (2_000, 3_000)]] * 2
    unsigned = SCHEMA.append(pa.field("gap", pa.uint64()))
    with pytest.raises(ColumnTypeError, match="int64"):
        query(EventTimeSessionWindows(0, "gap"), unsigned)
    with pytest.raises(ColumnTypeError, match="int64"):
        query(GlobalWindows(), unsigned, trigger=DeltaTrigger(1.0, Delta.abs_diff("gap")))


@examples(60)
@given(queries(), tables(exact=True), st.integers(1, 50), st.integers(1, 40))
def test_results_come_in_order_however_the_input_is_cut(
    made: WindowQuery, table: pa.Table, batch: int, chunk: int
) -> None:
    table = table.append_column(WITH_GAP.field("gap"), pa.array([7] * len(table), pa.int64()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpu_windows.operators.panes.runner.CHUNK_ELEMENTS", chunk)
        patch.setattr("gpu_windows.operators.panes.runner._MIN_ELEMENTS", 1)
        patch.setattr("gpu_windows.operators.panes.results.PIECE_ELEMENTS", chunk)
        patch.setattr("gpu_windows.operators.panes.operator.MAX_BUFFERED_ROWS", 3 * chunk)
        options = Options(device="cpu", batch_rows=batch, threads=2)
        try:
            planned = plan(replace(made, options=options), bounded=True)
        except QueryError:
            reject()
        if planned.strategy is not Strategy.BUFFER:
            reject()
        cut = local.run(planned, table)
    whole = local.run(
        plan(replace(made, options=Options(device="cpu", threads=1)), bounded=True), table
    )
    assert cut.counters == whole.counters
    assert ordered(cut.results) == ordered(whole.results)
    assert rows_of(cut.unused) == rows_of(whole.unused)


def _in_one_order(results: list[Any]) -> list[Any]:
    """Return traced results as they came, but those that timers of one time fired in one order."""
    together = groupby(results, key=lambda row: row[-2:])
    return [
        row
        for (cause, _), rows in together
        for row in (rows if cause == "element" else sorted(rows, key=repr))
    ]


def test_what_is_built_in_runs_compiled() -> None:
    """Only user code is left to run row at a time."""
    built_in = plan(query(GlobalWindows(), trigger=CountTrigger(3)), bounded=True)
    assert built_in.strategy is Strategy.BUFFER
    assert "state machine" in built_in.reasons[0]
    user = Delta.of("f", lambda old, new: new - old)
    asked = plan(query(GlobalWindows(), trigger=DeltaTrigger(1.0, user)), bounded=True)
    assert asked.strategy is Strategy.ROW_AT_A_TIME
    assert isinstance(build_operator(built_in), BufferOperator)


@pytest.mark.spark
@pytest.mark.parametrize(
    "name", quick(["lists", "early", "evictor", "global", "sessions"], "early", "evictor")
)
def test_spark_gives_what_the_local_runner_gives(spark: Any, name: str) -> None:
    rng = np.random.default_rng(3)
    table = pa.table(
        {
            "ts": pa.array(rng.permutation(4_000) * 10_000).cast(pa.timestamp("us", "UTC")),
            "k": rng.integers(0, 15, 4_000),
            "v": rng.integers(0, 100, 4_000) / 4,
            "text": rng.choice(["x", "y", "z"], 4_000),
        }
    )
    hopping = gw.SlidingEventTimeWindows.of("5 seconds", "2 seconds")
    queries: dict[str, Any] = {
        "lists": (hopping, lambda w: w, LISTS_OF_SPARK),
        "early": (hopping, lambda w: w.trigger(EARLY), AGGREGATES_OF_SPARK),
        "evictor": (hopping, lambda w: w.evictor(gw.TimeEvictor.of("1 second")), LISTS_OF_SPARK),
        "global": (
            gw.GlobalWindows.create(),
            lambda w: w.trigger(gw.DeltaTrigger.of(20.0, gw.Delta.abs_diff("v"))),
            AGGREGATES_OF_SPARK,
        ),
        "sessions": (
            gw.EventTimeSessionWindows.with_gap("400 ms"),
            lambda w: w.trigger(EARLY),
            AGGREGATES_OF_SPARK,
        ),
    }
    assigner, change, aggregates = queries[name]
    strategy = gw.WatermarkStrategy.for_monotonous_timestamps()

    def outputs(source: Any) -> gw.typing.Outputs:
        keyed = gw.stream(source).event_time("ts", strategy).key_by("k")
        windowed: gw.typing.WindowedStream = change(keyed.window(assigner))
        return (
            windowed.arrival_order("ts")
            .with_firing_columns()
            .with_outputs()
            .aggregate(**aggregates)
        )

    distributed = outputs(spark.createDataFrame(table).repartition(5))
    whole = outputs(table.sort_by("ts"))
    assert "strategy  buffer" in distributed.explain()
    assert rows_of(distributed.result().toArrow()) == rows_of(whole.result())
    assert counters_of(distributed.metrics()) == counters_of(whole.metrics())


EARLY = gw.EarlyAndLateTrigger.of(early=gw.CountTrigger.of(3))
LISTS_OF_SPARK = {
    "values": gw.collect_list("v"),
    "texts": gw.count_distinct("text"),
    "middle": gw.median("v"),
    "total": gw.sum("v"),
}
AGGREGATES_OF_SPARK = {"n": gw.count(), "total": gw.sum("v"), "last": gw.last("text")}


def test_a_count_needs_no_column_besides_key_and_time() -> None:
    table = pa.table({"ts": [1, 2, 3, 12], "key": ["a"] * 4, "part": pa.array([1] * 4, pa.int32())})
    made = query(
        TumblingEventTimeWindows(10),
        table.schema,
        aggregates={"n": Aggregate("count")},
        trigger=CountTrigger(2),
        firing_columns=True,
    )
    for evictor, count in ((None, 2), (CountEvictor.of(1), 1)):
        results = local.run(plan(replace(made, evictor=evictor), bounded=True), table).results
        assert results["n"].to_pylist() == [count]


@pytest.mark.parametrize("assigner", [TumblingEventTimeWindows(10), EventTimeSessionWindows(5)])
def test_nothing_and_what_is_in_no_window_leave_nothing(assigner: WindowAssigner) -> None:
    operator = build_operator(plan(query(assigner, trigger=CountTrigger(1)), bounded=False))
    [*operator.advance_watermark(50)]
    for rows, late in (([], 0), ([{"key": "a", "ts": None}, {"key": "a", "ts": 1}], 2)):
        batch = pa.Table.from_pylist(rows, schema=SCHEMA)
        emissions = [*operator.process(batch)]
        assert sum(len(e.late) for e in emissions) == late
        assert not any(len(e.results) for e in emissions)
    reasons = emissions[-1].late[REASON].to_pylist()
    assert reasons == ["null_timestamp", "late"]
    assert not any(operator.state_size().values())
