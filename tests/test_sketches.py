"""Approximate aggregates: as exact as they say, mergeable, and alike on every path."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows import aggregate_functions, errors, local
from gpu_windows.aggregates import Combine, Lift, Partial
from gpu_windows.operators import sketches
from gpu_windows.operators.partials import Rows
from gpu_windows.operators.sketches import DistinctColumn, QuantilesColumn
from gpu_windows.options import Options
from gpu_windows.plan import ARRIVAL, PartialsBy, Strategy
from gpu_windows.planner import plan
from gpu_windows.triggers import CountTrigger, PurgingTrigger
from gpu_windows.windows import EventTimeSessionWindows, GlobalWindows, SlidingEventTimeWindows
from tests.examples import examples
from tests.queries import assigners, query, rows_of, tables
from tests.tasks import through_tasks, with_arrival

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Of few values, every one of these is exact.
APPROXIMATE = {
    **{
        f"different_{name}": gw.approx_count_distinct(name)
        for name in ("i", "f", "text", "day", "b", "d")
    },
    "low": gw.approx_quantile("i", 0.1),
    "middle": gw.approx_quantile("f", 0.5),
    "high": gw.approx_quantile("small", 0.9, k=64),
}


@examples(60)
@given(
    st.one_of(
        assigners(),
        st.just(EventTimeSessionWindows(7)),
        st.just(GlobalWindows()),
    ),
    st.sampled_from(["default", "counts", "buffer"]),
    tables(exact=True),
    st.integers(1, 50),
)
def test_every_strategy_gives_what_the_reference_gives(
    assigner: Any, kind: str, table: pa.Table, batch: int
) -> None:
    trigger = {
        "default": assigner.default_trigger(),
        "counts": PurgingTrigger(CountTrigger(4)),
        "buffer": gw.EarlyAndLateTrigger.of(early=CountTrigger(2)),
    }[kind]

    def results(options: Options) -> pa.Table:
        made = query(assigner, aggregates=APPROXIMATE, trigger=trigger, options=options)
        return local.run(plan(made, bounded=True), table).results

    got = results(Options(device="cpu", batch_rows=batch, threads=2))
    assert rows_of(got) == rows_of(results(Options(engine="reference")))


def test_of_few_values_they_are_exact() -> None:
    table = pa.table({"ts": [1, 2, 3, 4], "k": ["a"] * 4, "v": [4.0, math.nan, None, 4.0]})
    keyed = gw.stream(table).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    windowed = keyed.key_by("k").window(gw.TumblingEventTimeWindows.of("10 us"))
    found = windowed.aggregate(
        n=gw.approx_count_distinct("v"), least=gw.approx_quantile("v", 0), none=gw.count("v")
    )
    assert found.select(["n", "least", "none"]).to_pylist() == [{"n": 2, "least": 4.0, "none": 3}]


@pytest.fixture(scope="module")
def many() -> pa.Table:
    """Many rows of few keys, over ten windows."""
    rng, count = np.random.default_rng(5), 200_000
    return pa.table(
        {
            "key": rng.choice(["a", "b"], count),
            "part": pa.array(np.zeros(count), pa.int32()),
            "ts": rng.integers(0, 1_000, count),
            "i": rng.integers(0, 30_000, count),
            "f": rng.normal(size=count),
        }
    )


@pytest.mark.parametrize("assigner", [SlidingEventTimeWindows(300, 100), GlobalWindows()])
def test_many_rows_stay_within_the_error(many: pa.Table, assigner: Any) -> None:
    changes: dict[str, Any] = {}
    if isinstance(assigner, GlobalWindows):
        changes["trigger"] = gw.EndOfStreamTrigger()
    aggregates = {
        "about": gw.approx_count_distinct("i"),
        "exactly": gw.count_distinct("i"),
        "low": gw.approx_quantile("f", 0.1),
        "high": gw.approx_quantile("f", 0.9),
        "values": gw.collect_list("f"),
    }
    made = query(assigner, many.schema, aggregates=aggregates, **changes)
    for row in local.run(plan(made, bounded=True), many).results.to_pylist():
        assert abs(row["about"] / row["exactly"] - 1) < 0.06
        values = np.sort(row["values"])
        for name, wanted in (("low", 0.1), ("high", 0.9)):
            rank = np.searchsorted(values, row[name], side="right") / len(values)
            assert abs(rank - wanted) < 0.03


def test_distinct_counts_do_not_depend_on_tasks_and_batches(many: pa.Table) -> None:
    aggregates = {"about": gw.approx_count_distinct("i"), "n": gw.count()}
    made = query(SlidingEventTimeWindows(300, 100), many.schema, aggregates=aggregates)
    planned = plan(made, bounded=True)
    assert planned.strategy is Strategy.SLICES
    many = with_arrival(many)
    wanted = rows_of(through_tasks(planned, [many])[0])
    halves = [many.slice(0, 70_000), many.slice(70_000)]
    assert rows_of(through_tasks(planned, halves)[0]) == wanted
    assert rows_of(through_tasks(planned, [many.take(np.arange(len(many))[::-1])])[0]) == wanted
    reference = query(
        made.assigner, made.schema, aggregates=aggregates, options=Options(engine="reference")
    )
    few = many.slice(0, 20_000)
    whole = local.run(plan(reference, bounded=True), few.drop_columns([ARRIVAL])).results
    assert rows_of(through_tasks(planned, [few])[0]) == rows_of(whole)


def test_a_sketch_of_no_value_and_a_null_are_the_same() -> None:
    for column in (
        DistinctColumn(Partial(Combine.DISTINCT_SKETCH, Lift.VALUE, "v", size=12), "p"),
        QuantilesColumn(Partial(Combine.QUANTILES_SKETCH, Lift.VALUE, "v", size=200), "p"),
    ):
        (blobs,) = column.to_arrow(column.nothing())
        states = column.from_arrow([pa.chunked_array([blobs, pa.nulls(1, pa.binary())])])
        rows = Rows(pa.table({"v": pa.array([1.0, None, 1.0])}))
        states = column.concat([states, column.materialise(column.lift(rows), 3)])
        if isinstance(column, DistinctColumn):
            assert [sketches.distinct(sketch) for sketch in states[0]] == [0, 0, 1, 0, 1]
        else:
            found = [sketches.quantile(sketch, 0.5) for sketch in states[0]]
            assert found == [None, None, 1.0, None, 1.0]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: gw.approx_count_distinct("v", lg_k=30), r"\[7, 21\].*30"),
        (lambda: gw.approx_quantile("v", 1.5), r"\[0, 1\].*1.5"),
        (lambda: gw.approx_quantile("v", 0.5, k=2), r"\[8, 65535\].*2"),
    ],
)
def test_bad_parameters(make: Any, text: str) -> None:
    with pytest.raises(errors.QueryError, match=text):
        make()


def test_without_the_library_the_driver_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregate_functions, "find_spec", lambda _: None)
    with pytest.raises(errors.UnsupportedAggregateError, match=r"gpu-windows\[sketches\]"):
        gw.approx_quantile("v", 0.5)


@pytest.mark.spark
def test_spark_gives_what_the_local_runner_gives(spark: SparkSession, many: pa.Table) -> None:
    table = many.select(["key", "ts", "i", "f"])
    at = table.schema.get_field_index("ts")
    table = table.set_column(at, "ts", table["ts"].cast(pa.timestamp("us", "UTC")))

    def outputs(source: Any) -> gw.Outputs:
        timed = gw.stream(source).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        windowed = timed.key_by("key").window(gw.SlidingEventTimeWindows.of("300 us", "100 us"))
        return windowed.outputs(about=gw.approx_count_distinct("i"), n=gw.count())

    distributed = outputs(spark.createDataFrame(table).repartition(5))
    assert distributed.plan.partials_by is PartialsBy.KERNELS
    assert "DataSketches" in distributed.explain()
    assert rows_of(distributed.result().toArrow()) == rows_of(outputs(table).result())
