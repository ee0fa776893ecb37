"""The counts strategy gives what the reference gives, however the input is cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.planning.plan import Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.runners import local
from gpu_windows.vocabulary.evictors import CountEvictor
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.triggers import CountTrigger, PurgingTrigger
from gpu_windows.vocabulary.windows import GlobalWindows
from tests.examples import examples
from tests.operators.slices.count_windows import count_window
from tests.planning.queries import counters_of, query, rows_of, tables


@examples(150)
@given(
    st.integers(1, 9),
    st.one_of(st.none(), st.integers(1, 9)),
    tables(exact=True),
    st.integers(1, 50),
)
def test_count_windows_equal_the_reference(
    size: int, slide: int | None, table: pa.Table, batch: int
) -> None:
    options = Options(device="cpu", batch_rows=batch, threads=2)
    made = plan(count_window(size, slide, options=options), bounded=True)
    assert made.strategy is Strategy.COUNTS
    got = local.run(made, table)
    reference = Options(engine="reference")
    wanted = local.run(plan(count_window(size, slide, options=reference), bounded=True), table)
    assert got.counters == wanted.counters
    assert [rows_of(got.results.slice(i, 1)) for i in range(len(got.results))] == [
        rows_of(wanted.results.slice(i, 1)) for i in range(len(wanted.results))
    ]
    assert rows_of(got.unused) == rows_of(wanted.unused)


def test_what_is_no_count_window_says_why() -> None:
    after = query(
        GlobalWindows(), trigger=CountTrigger(3), evictor=CountEvictor.of(2, evict_after=True)
    )
    for made in (after, query(GlobalWindows(), trigger=CountTrigger(3))):
        assert plan(made, bounded=True).strategy is Strategy.BUFFER
    collected = query(GlobalWindows(), trigger=PurgingTrigger(CountTrigger(3)))
    assert "row numbers" not in plan(collected, bounded=True).reasons[0]
    assert "numbered" in plan(collected, bounded=True).reasons[0]


def test_functions_that_need_rows_keep_them() -> None:
    table = pa.table({"ts": pa.array([5, 6, 7, 8]), "k": ["a"] * 4, "v": [4, 1, 3, 2]})
    timed = gw.stream(table).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    windowed = timed.key_by("k").count_window(2)
    assert windowed.collect_lists("v")["v"].to_pylist() == [[4, 1], [3, 2]]
    assert windowed.aggregate(m=gw.median("v"))["m"].to_pylist() == [2.5, 2.5]
    assert (
        "needs all values of a window"
        in windowed.with_outputs().aggregate(m=gw.median("v")).explain()
    )


@pytest.mark.spark
@pytest.mark.parametrize(("size", "slide"), [(7, None), (10, 3), (2, 5)])
def test_spark_gives_what_the_local_runner_gives(spark: Any, size: int, slide: int | None) -> None:
    rng = np.random.default_rng(5)
    table = pa.table(
        {
            "ts": pa.array(np.arange(3_000) * 1_000).cast(pa.timestamp("us", "UTC")),
            "k": rng.integers(0, 20, 3_000),
            "v": rng.integers(0, 100, 3_000) / 4,
        }
    )
    strategy = gw.WatermarkStrategy.for_monotonous_timestamps()

    def outputs(source: Any) -> gw.typing.Outputs:
        windowed = (
            gw.stream(source).event_time("ts", strategy).key_by("k").count_window(size, slide)
        )
        windowed = windowed.arrival_order("ts").with_firing_columns()
        return windowed.with_outputs().aggregate(n=gw.count(), s=gw.sum("v"), last=gw.last("v"))

    distributed, whole = outputs(spark.createDataFrame(table).repartition(5)), outputs(table)
    assert "strategy  counts" in distributed.explain()
    assert rows_of(distributed.result().toArrow()) == rows_of(whole.result())
    assert counters_of(distributed.metrics()) == counters_of(whole.metrics())
