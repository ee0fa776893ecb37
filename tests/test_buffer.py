"""The buffer strategy gives what the reference gives, for every built-in combination."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.aggregates.built_in import collect_list, count_distinct, median, quantile
from gpu_windows.aggregates.definitions import Aggregate
from gpu_windows.deltas import Delta
from gpu_windows.errors import (
    ColumnTypeError,
    InvalidWindowError,
    OperatorFailedError,
    QueryError,
)
from gpu_windows.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from gpu_windows.functions.built_in import Collect
from gpu_windows.operators.base import Operator
from gpu_windows.operators.build import build_operator
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.panes.operator import BufferOperator
from gpu_windows.options import Options
from gpu_windows.planning.plan import ARRIVAL, Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.query.base import REASON
from gpu_windows.query.window import WindowQuery
from gpu_windows.rules import LONG_MAX
from gpu_windows.runners import local
from gpu_windows.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EarlyAndLateTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)
from gpu_windows.windows import (
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from tests.examples import examples
from tests.queries import SCHEMA, counters_of, query, rows_of, tables

WINDOW = ("window_start", "window_end")
WITH_GAP = SCHEMA.append(pa.field("gap", pa.int64()))

DELTAS = st.builds(
    Delta,
    st.sampled_from(["f", "i"]),
    st.sampled_from(["old_minus_new", "new_minus_old", "abs_diff"]),
)
INTERVALS = st.integers(1, 15)


#: Aggregates that need all values of a window, and some that do not.
LISTS = {
    "texts": collect_list("text"),
    "days": collect_list("day"),
    "different": count_distinct("f"),
    "names": count_distinct("text"),
    "median": median("f"),
    "low": quantile("small", 0.1),
    "sum_i": Aggregate("sum", "i"),
    "last_text": Aggregate("last", "text", skip_nulls=True),
}


def triggers() -> st.SearchStrategy[Trigger]:
    """Every built-in trigger, and those made of others."""
    leaves = st.one_of(
        st.sampled_from(
            [EventTimeTrigger(), ProcessingTimeTrigger(), EndOfStreamTrigger(), NeverTrigger()]
        ),
        INTERVALS.map(ContinuousEventTimeTrigger),
        INTERVALS.map(ContinuousProcessingTimeTrigger),
        st.integers(1, 4).map(CountTrigger),
        st.builds(DeltaTrigger, st.integers(-3, 10).map(float), DELTAS),
    )

    def wrapped(inner: st.SearchStrategy[Trigger]) -> st.SearchStrategy[Trigger]:
        return st.one_of(
            inner.map(PurgingTrigger),
            st.builds(ProcessingTimeoutTrigger, inner, INTERVALS, st.booleans(), st.booleans()),
            st.builds(EarlyAndLateTrigger, inner, st.one_of(st.none(), inner)),
            st.builds(EarlyAndLateTrigger, st.none(), inner),
        )

    return st.recursive(leaves, wrapped, max_leaves=3)


def evictors() -> st.SearchStrategy[Evictor | None]:
    """Every built-in evictor, before and after the function, and none."""
    return st.one_of(
        st.none(),
        st.builds(CountEvictor, st.booleans(), st.integers(0, 4)),
        st.builds(TimeEvictor, st.booleans(), st.integers(0, 20)),
        st.builds(DeltaEvictor, st.booleans(), st.integers(-3, 10).map(float), DELTAS),
    )


def assigners() -> st.SearchStrategy[WindowAssigner]:
    """Windows of both times, that merge and that do not."""
    size = st.integers(1, 25)
    return st.one_of(
        size.map(TumblingEventTimeWindows),
        st.builds(SlidingEventTimeWindows, size, st.integers(1, 12)),
        st.builds(
            lambda n, step: CumulativeEventTimeWindows(n * step, step), st.integers(1, 4), size
        ),
        st.sampled_from([GlobalWindows(), GlobalWindows(at_end=True)]),
        st.integers(1, 30).map(EventTimeSessionWindows),
        st.just(EventTimeSessionWindows(0, "gap")),
        size.map(TumblingProcessingTimeWindows),
        st.builds(SlidingProcessingTimeWindows, size, st.integers(1, 12)),
        st.integers(1, 30).map(ProcessingTimeSessionWindows),
    )


@st.composite
def queries(draw: st.DrawFn, among: st.SearchStrategy[WindowAssigner] | None = None) -> WindowQuery:
    """Queries that are allowed, with aggregates of every kind or the rows themselves."""
    assigner = draw(assigners() if among is None else among)
    trigger = draw(st.one_of(st.just(assigner.default_trigger()), triggers(), triggers()))
    endless = any(isinstance(part, ContinuousEventTimeTrigger) for part in trigger.walk())
    if endless and isinstance(assigner, GlobalWindows):
        reject()  # it fires from a row's time to the end of time, as in Flink
    changes: dict[str, Any] = {}
    function = draw(st.sampled_from(["partials", "lists", "rows"]))
    if function == "rows":
        changes["function"] = Collect(("i", "text"))
    if function == "lists":
        changes["aggregates"] = LISTS
    try:
        return query(
            assigner,
            WITH_GAP,
            trigger=trigger,
            evictor=draw(evictors()),
            allowed_lateness=draw(st.sampled_from([0, 0, 5, 40])),
            firing_columns=draw(st.booleans()),
            **changes,
        )
    except QueryError:
        reject()


Step = tuple[str, Any]


@st.composite
def inputs(draw: st.DrawFn, most: int = 40) -> list[Step]:
    """Rows in batches, watermarks and times of the clock that rise, the end of time, some more."""
    table = draw(tables(most=most, exact=True))
    gaps = [draw(st.integers(1, 30)) for _ in range(len(table))]
    table = table.append_column(WITH_GAP.field("gap"), pa.array(gaps, pa.int64()))
    table = table.append_column(ARRIVAL, pa.array(np.arange(len(table))))
    steps: list[Step] = []
    at, watermark, clock = 0, -70, 0
    while at < len(table):
        size = draw(st.integers(1, 12))
        steps.append(("rows", table.slice(at, size)))
        at += size
        if draw(st.booleans()):
            watermark += draw(st.integers(0, 40))
            steps.append(("watermark", watermark))
        if draw(st.booleans()):
            clock += draw(st.integers(0, 20))
            steps.append(("clock", clock))
    after = draw(st.integers(0, 5))  # where windows have no event time, these count
    more = [("rows", table.slice(0, after)), ("clock", clock + 20)] if after else []
    return [*steps, ("watermark", LONG_MAX), *more]


def run(operator: Operator, steps: list[Step]) -> Iterator[tuple[list[Any], list[Any], Counters]]:
    """Yield results, rows that are given back and counters of every step."""
    for kind, value in steps:
        if kind == "rows":
            emissions = [*operator.process(value)]
        elif kind == "watermark":
            emissions = [*operator.advance_watermark(value)]
        else:
            emissions = [*operator.advance_processing_time(value)]
        results = [row for e in emissions for row in _ordered(e.results)]
        late = [rows_of(e.late.select(["key", "ts", REASON])) for e in emissions if len(e.late)]
        counters = sum((e.counters for e in emissions), Counters())
        yield results, sorted(chain(*late), key=repr), counters


def ends(made: WindowQuery, steps: list[Step]) -> bool:
    """Whether nothing is left: windows without an end keep rows that come after the end of time."""
    last = [step[0] for step in steps if step[0] == "rows" or step[1] == LONG_MAX][-1:]
    return made.assigner.is_event_time or (made.ends_with_time and last != ["rows"])


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
    steps: list[Step] = [("rows", row), ("clock", 1), ("clock", 2), ("watermark", LONG_MAX)]
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
    with pytest.raises(InvalidWindowError, match="must be positive, got 0"):
        [*operator.process(bad)]
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
        patch.setattr("gpu_windows.operators.panes.runner._LEAST_ELEMENTS", 1)
        patch.setattr("gpu_windows.operators.panes.results.PIECE_ELEMENTS", chunk)
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
    assert _ordered(cut.results) == _ordered(whole.results)
    assert rows_of(cut.unused) == rows_of(whole.unused)


def _ordered(table: pa.Table) -> list[Any]:
    return [rows_of(table.slice(i, 1))[0] for i in range(len(table))]


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
@pytest.mark.parametrize("name", ["lists", "early", "evictor", "global", "sessions"])
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

    def outputs(source: Any) -> gw.Outputs:
        keyed = gw.stream(source).event_time("ts", strategy).key_by("k")
        windowed: gw.WindowedStream = change(keyed.window(assigner))
        return windowed.order_by("ts").with_firing_columns().outputs(**aggregates)

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
