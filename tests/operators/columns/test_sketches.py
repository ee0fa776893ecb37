"""Approximate aggregates: as exact as they say, mergeable, and alike on every path."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.aggregates.partials import Combine, Lift, Partial
from gpu_windows.operators.columns import sketches
from gpu_windows.operators.columns.partials import Rows
from gpu_windows.operators.columns.sketches import DistinctColumn, QuantilesColumn
from gpu_windows.operators.slices.preaggregation import Preaggregation
from gpu_windows.planning.plan import ARRIVAL, PartialsBy, Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.runners import local
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.triggers import CountTrigger, PurgingTrigger
from gpu_windows.vocabulary.windows import (
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from tests.examples import examples
from tests.operators.columns.approximate import APPROXIMATE
from tests.operators.slices.tasks import through_tasks, with_arrival
from tests.planning.queries import SCHEMA, assigners, query, rows_of, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APPROXIMATE_ONE = {"about": gw.approx_count_distinct("i")}


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


@examples(60)
@given(assigners(), tables())
def test_of_few_values_they_are_exact(assigner: Any, table: pa.Table) -> None:
    exact = {
        **{name: gw.count_distinct(str(bound.column)) for name, bound in APPROXIMATE.items()},
        **{f"all_{name}": gw.collect_list(name) for name in ("i", "f", "small")},
    }
    made = [query(assigner, aggregates=each) for each in (APPROXIMATE, exact)]
    approximate, exactly = (local.run(plan(one, bounded=True), table).results for one in made)
    order = [(name, "ascending") for name in ("key", "part", "window_start", "window_end")]
    pairs = zip(
        approximate.sort_by(order).to_pylist(), exactly.sort_by(order).to_pylist(), strict=True
    )
    for about, row in pairs:
        for name in APPROXIMATE:
            if name.startswith("different"):
                assert about[name] == row[name], name
        for name, column in (("low", "i"), ("middle", "f"), ("high", "small")):
            assert about[name] == least_of_rank(row[f"all_{column}"], APPROXIMATE[name].fraction)


def least_of_rank(values: list[float], fraction: float | None) -> float | None:
    """Return the least value that at least this share of the values does not exceed."""
    ranked = sorted(float(value) for value in values if not math.isnan(value))
    needed = max(1, math.ceil((fraction or 0.0) * len(ranked) - 1e-9))
    return ranked[needed - 1] if ranked else None


def test_an_empty_text_is_a_value() -> None:
    for dtype in (pa.string(), pa.large_string()):
        table = pa.table(
            {"ts": [1, 2, 3, 4], "k": ["a"] * 4, "v": pa.array(["", "t", None, ""], dtype)}
        )
        timed = gw.stream(table).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        windowed = timed.key_by("k").window(gw.TumblingEventTimeWindows.of("10 us"))
        assert windowed.aggregate(n=gw.approx_count_distinct("v"))["n"].to_pylist() == [2]


def test_tasks_always_make_sketches_of_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_windows.operators.slices.preaggregation._TRIAL_ROWS", 10)
    rows = [{"key": str(i), "part": 1, "ts": i, "i": i} for i in range(60)]
    table = with_arrival(pa.Table.from_pylist(rows, schema=SCHEMA))
    made = {
        name: plan(
            query(
                TumblingEventTimeWindows(10),
                aggregates=aggregates,
                options=Options(device="cpu", batch_rows=20),
            ),
            bounded=True,
        )
        for name, aggregates in (("sketch", APPROXIMATE), ("sum", {"n": gw.sum("i")}))
    }
    batches = table.to_batches(max_chunksize=20)
    parts = {name: len(list(Preaggregation(one).run(batches))) for name, one in made.items()}
    assert parts["sketch"] == 2  # partials and counters, once
    assert parts["sum"] > 2  # every batch by itself: they do not shrink


def test_what_is_large_is_cut_into_pieces(monkeypatch: pytest.MonkeyPatch, many: pa.Table) -> None:
    few = many.slice(0, 3_000)
    made = {
        "slices": query(SlidingEventTimeWindows(300, 1), few.schema, aggregates=APPROXIMATE_ONE),
        "counts": query(
            GlobalWindows(),
            few.schema,
            aggregates=APPROXIMATE_ONE,
            trigger=CountTrigger(3),
            evictor=gw.CountEvictor.of(9),
        ),
        "buffer": query(
            GlobalWindows(), few.schema, aggregates=APPROXIMATE_ONE, trigger=CountTrigger(3)
        ),
    }
    whole = {name: local.run(plan(one, bounded=True), few).results for name, one in made.items()}
    sizes = []
    combine = DistinctColumn.combine_prepared

    def watched(self: DistinctColumn, backend: Any, windows: Any, state: Any) -> Any:
        sizes.append(windows.count)
        return combine(self, backend, windows, state)

    monkeypatch.setattr(DistinctColumn, "combine_prepared", watched)
    for name in ("slices.operator.EMISSION", "slices.counts._PIECE", "panes.runner._CHUNK"):
        monkeypatch.setattr(f"gpu_windows.operators.{name}_BYTES", 1 << 18)
    for name, one in made.items():
        assert rows_of(local.run(plan(one, bounded=True), few).results) == rows_of(whole[name])
    assert max(sizes) < 100
    assert sum(sizes) > 1_000


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
        DistinctColumn(Partial(Combine.DISTINCT_SKETCH, Lift.VALUE, "v", sketch_size=12), "p"),
        QuantilesColumn(Partial(Combine.QUANTILES_SKETCH, Lift.VALUE, "v", sketch_size=200), "p"),
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


@pytest.mark.parametrize("lg_k", [6, 22, 12.0, True, "12", None])
def test_bad_sizes_of_distinct_sketches(lg_k: Any) -> None:
    with pytest.raises(errors.QueryError, match=re.escape(f"[7, 21], got {lg_k!r}")):
        gw.approx_count_distinct("v", lg_k=lg_k)


@pytest.mark.parametrize("k", [7, 65_536, 200.0, False, "200", None])
def test_bad_sizes_of_quantile_sketches(k: Any) -> None:
    with pytest.raises(errors.QueryError, match=re.escape(f"[8, 65535], got {k!r}")):
        gw.approx_quantile("v", 0.5, k=k)


@pytest.mark.parametrize("fraction", [-0.1, 1.5, math.nan, True, "0.5", None])
def test_bad_fractions(fraction: Any) -> None:
    for make in (gw.approx_quantile, gw.quantile):
        with pytest.raises(errors.QueryError, match=re.escape(f"[0, 1], got {fraction!r}")):
            make("v", fraction)


def test_sizes_are_shown() -> None:
    assert gw.approx_quantile("v", 0.5, k=64).describe() == "approx_quantile(v, 0.5, size 64)"
    assert gw.approx_count_distinct("v").describe() == "approx_count_distinct(v, size 12)"


def test_without_the_library_the_driver_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_windows.errors.find_spec", lambda _: None)
    with pytest.raises(errors.MissingExtraError, match=r"gpu-windows\[sketches\]"):
        gw.approx_quantile("v", 0.5)


@pytest.mark.spark
def test_spark_gives_what_the_local_runner_gives(spark: SparkSession, many: pa.Table) -> None:
    table = many.select(["key", "ts", "i", "f"])
    at = table.schema.get_field_index("ts")
    table = table.set_column(at, "ts", table["ts"].cast(pa.timestamp("us", "UTC")))

    def outputs(source: Any) -> gw.typing.Outputs:
        timed = gw.stream(source).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        windowed = timed.key_by("key").window(gw.SlidingEventTimeWindows.of("300 us", "100 us"))
        return windowed.with_outputs().aggregate(about=gw.approx_count_distinct("i"), n=gw.count())

    distributed = outputs(spark.createDataFrame(table).repartition(5))
    assert distributed.plan.partials_by is PartialsBy.KERNELS
    assert "DataSketches" in distributed.explain()
    assert rows_of(distributed.result().toArrow()) == rows_of(outputs(table).result())
