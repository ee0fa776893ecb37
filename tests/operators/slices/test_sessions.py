"""The sessions strategy gives what the reference gives, however the input is cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.slices.preaggregation import Preaggregation, split_counts
from gpu_windows.operators.slices.sessions import SessionsOperator
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import ARRIVAL, Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.runners import local
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.triggers import PurgingTrigger
from gpu_windows.vocabulary.windows import EventTimeSessionWindows
from tests.examples import examples
from tests.operators.panes.queries import GAPS
from tests.operators.slices.tasks import parts_of, through_tasks, with_arrival
from tests.planning.queries import AGGREGATES, SCHEMA, query, rows_of, tables

WITH_GAP = SCHEMA.append(pa.field("gap", pa.int64()))


@st.composite
def session_tables(draw: st.DrawFn) -> pa.Table:
    """Tables of `tests.planning.queries` with a gap in each row, few of them bad."""
    table = draw(tables(exact=True))
    gaps = [draw(GAPS) for _ in range(len(table))]
    return table.append_column(WITH_GAP.field("gap"), pa.array(gaps, pa.int64()))


ASSIGNERS = st.one_of(
    st.integers(1, 30).map(lambda gap: EventTimeSessionWindows(gap)),
    st.just(EventTimeSessionWindows(0, "gap")),
)


#: Those that do not depend on the order of rows: the others need the rows where sessions merge.
ORDER_FREE = {
    name: aggregate
    for name, aggregate in AGGREGATES.items()
    if aggregate.function not in ("first", "last", "arg_min", "arg_max", "collect_list")
}


def planned(assigner: Any, **changes: Any) -> WindowPlan:
    made = plan(query(assigner, WITH_GAP, **{"aggregates": ORDER_FREE, **changes}), bounded=True)
    assert made.strategy is Strategy.SESSIONS
    return made


def test_the_order_of_rows_in_merged_sessions_is_that_of_the_reference() -> None:
    """The row at 6 joins the sessions of 10 and 2; the rows of the earlier session come first."""
    rows = {"key": "a", "part": 0, "gap": 5}
    table = pa.Table.from_pylist(
        [{**rows, "ts": ts, "text": text} for ts, text in zip((10, 2, 6, 7), "abcd", strict=True)],
        schema=WITH_GAP,
    )
    aggregates = {"first": Aggregate("first", "text"), "all": Aggregate("collect_list", "text")}
    for engine in ("auto", "reference"):
        for wanted in ({"first": aggregates["first"]}, aggregates):
            options = Options(engine=engine, device="cpu")
            made = query(EventTimeSessionWindows(5), WITH_GAP, aggregates=wanted, options=options)
            found = local.run(plan(made, bounded=True), table).results
            assert found["first"].to_pylist() == ["b"]


@examples(150)
@given(ASSIGNERS, session_tables(), st.integers(1, 50))
def test_sessions_equal_the_reference(assigner: Any, table: pa.Table, batch: int) -> None:
    options = Options(device="cpu", batch_rows=batch, threads=2)
    got = local.run(planned(assigner, options=options), table)
    reference = plan(
        query(assigner, WITH_GAP, aggregates=ORDER_FREE, options=Options(engine="reference")),
        bounded=True,
    )
    wanted = local.run(reference, table)
    assert rows_of(got.results) == rows_of(wanted.results)
    assert got.counters == wanted.counters
    assert rows_of(got.unused) == rows_of(wanted.unused)
    ends = got.results["window_end"].to_pylist()
    assert ends == sorted(ends)


@examples(60)
@given(ASSIGNERS, session_tables(), st.data())
def test_partials_of_any_tasks_give_the_same(
    assigner: Any, table: pa.Table, data: st.DataObject
) -> None:
    made = planned(assigner)
    got, counters = through_tasks(made, parts_of(data, with_arrival(table)))
    whole = local.run(made, table)
    assert rows_of(got) == rows_of(whole.results)
    assert counters == whole.counters


def test_rows_sent_without_aggregation_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_windows.operators.slices.preaggregation._TRIAL_ROWS", 10)
    rows = [{"key": str(i % 3), "ts": 7 * i, "i": i, "gap": 1 + i % 20} for i in range(60)]
    table = pa.Table.from_pylist(rows, schema=WITH_GAP)
    table = table.append_column(ARRIVAL, pa.array(np.arange(len(table))))
    made = planned(EventTimeSessionWindows(0, "gap"), options=Options(device="cpu", batch_rows=10))
    final = SessionsOperator(made, Kernels("cpu"))
    sent = list(Preaggregation(made).run(table.to_batches()))
    assert sum(map(len, sent)) == len(table) + 1  # and the counters
    for partials in sent:
        final.merge(split_counts(made, partials)[0])
    (emission,) = final.advance_watermark(LONG_MAX)
    whole = local.run(made, table.drop_columns([ARRIVAL])).results
    assert rows_of(emission.results) == rows_of(whole)


def test_gaps_as_intervals() -> None:
    rows = {"k": ["a"] * 3, "ts": [0, 5_000_000, 20_000_000], "v": [1.0, 2.0, 4.0]}
    table = pa.table(rows)
    table = table.set_column(1, "ts", table["ts"].cast(pa.timestamp("us", "UTC")))
    strategy = gw.WatermarkStrategy.for_monotonous_timestamps()

    def totals(gaps: pa.Array) -> list[float]:
        timed = gw.stream(table.append_column("gap", gaps)).event_time("ts", strategy)
        windowed = timed.key_by("k").window(gw.EventTimeSessionWindows.with_dynamic_gap("gap"))
        found: list[float] = windowed.aggregate(total=gw.sum("v"))["total"].to_pylist()
        return found

    seconds = pa.array([5, 1, 1], pa.int64())
    assert totals(seconds.cast(pa.duration("s"))) == [3.0, 4.0]
    assert totals(pa.array([4_999_999, 1, 1])) == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_row_whose_window_is_the_session_joins_it(engine: Any) -> None:
    """Flink 2.3 loses the first two rows here and emits [20, 1], as recorded from a run."""
    rows = [(0, 10, 10), (10, 10, 10), (0, 20, 20), (3, 1, 1)]
    names = ("ts", "gap", "i")
    table = pa.Table.from_pylist(
        [{**dict(zip(names, row, strict=True)), "key": "a"} for row in rows], schema=WITH_GAP
    )
    made = query(EventTimeSessionWindows(0, "gap"), WITH_GAP, options=Options(engine=engine))
    results = local.run(plan(made, bounded=True), table).results
    assert (results["window_start"].to_pylist(), results["window_end"].to_pylist()) == ([0], [20])
    assert results["sum_i"].to_pylist() == [41]


def test_what_is_not_columnar_says_why() -> None:
    late = query(EventTimeSessionWindows(5))
    assert plan(late, bounded=False).strategy is Strategy.BUFFER
    purging = query(
        EventTimeSessionWindows(5),
        aggregates=ORDER_FREE,
        trigger=PurgingTrigger(gw.EventTimeTrigger()),
    )
    assert plan(purging, bounded=True).strategy is Strategy.SESSIONS
    sessions = EventTimeSessionWindows(5)
    counting = query(sessions, aggregates=ORDER_FREE, trigger=gw.CountTrigger(2))
    assert "looks at single rows" in plan(counting, bounded=True).reasons[0]
    picking = plan(query(sessions), bounded=True)
    assert picking.strategy is Strategy.BUFFER
    assert "first(text)" in picking.reasons[0]
    spark = query(sessions, aggregates=ORDER_FREE, options=Options(partials="spark"))
    with pytest.raises(errors.UnsupportedQueryError, match="of slices: sessions"):
        plan(spark, bounded=True, spark=True)
    asked = query(sessions, options=Options(partials="spark"))
    with pytest.raises(errors.UnsupportedQueryError, match=r"of slices: buffer.*first\(text\)"):
        plan(asked, bounded=True, spark=True)


@pytest.mark.spark
def test_spark_gives_what_the_local_runner_gives(spark: Any) -> None:
    rng = np.random.default_rng(3)
    count = 5_000
    ticks = pa.array(rng.integers(0, 3_600_000_000, count), mask=rng.random(count) < 0.02)
    table = pa.table(
        {
            "ts": ticks.cast(pa.timestamp("us", "UTC")),
            "k": rng.integers(0, 20, count),
            "v": rng.integers(0, 100, count) / 4,
        }
    )
    strategy = gw.WatermarkStrategy.for_monotonous_timestamps()

    def outputs(source: Any) -> gw.typing.Outputs:
        keyed = gw.stream(source).event_time("ts", strategy).key_by("k")
        windowed = keyed.window(gw.EventTimeSessionWindows.with_gap("10 seconds"))
        return windowed.with_outputs().aggregate(
            n=gw.count(), s=gw.sum("v"), top=gw.max("v"), sd=gw.stddev("v")
        )

    frame = spark.createDataFrame(table).repartition(5)
    distributed, whole = outputs(frame), outputs(table)
    assert "sessions" in distributed.explain()
    assert rows_of(distributed.result().toArrow()) == rows_of(whole.result())
    wanted = frame.groupBy("k", spark_session_window()).count().count()
    assert len(whole.result()) == wanted
    assert len(distributed.rejected().toArrow()) == len(whole.rejected())


def spark_session_window() -> Any:
    from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

    return F.session_window("ts", "10 seconds")
