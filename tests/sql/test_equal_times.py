"""Rows of one time in OVER and ROW_NUMBER, as Flink answers: bounded, and in micro-batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import QueryError
from gpu_windows.operators.build import restore_operator
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.planner import plan

ROWS = pa.table(
    {
        "k": list("aaaaabb"),
        "ts": [1, 2, 2, 3, 3, 3, 3],
        "v": [113.0, 73.5, 40.75, 1.0, 4.0, 2.0, 3.0],
    }
)
LAGS = """
SELECT k, v, LAG(v) OVER (PARTITION BY k ORDER BY ts) AS one,
  LAG(v, 2) OVER (PARTITION BY k ORDER BY ts) AS two FROM t
"""
#: By the rule of Flink 2.3, which `over/lag_price` of the corpus has recorded.
EXPECTED = {
    (113.0, None, None),
    (73.5, 73.5, 113.0),
    (40.75, 73.5, 113.0),
    (1.0, 1.0, 40.75),
    (4.0, 1.0, 40.75),
    (2.0, 2.0, None),
    (3.0, 2.0, None),
}
LATEST = """
SELECT k, v FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM t) WHERE n = 1
"""


def outputs(text: str) -> gw.typing.Outputs:
    in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
    return gw.sql(text, t=gw.stream(ROWS).event_time("ts", in_order)).outputs()


def in_micro_batches(made: gw.typing.Outputs) -> Iterator[dict[str, Any]]:
    """Yield results of an operator that is given the rows of a time in each micro-batch."""
    planned, log = plan(made.plan.query, bounded=False, spark=True), MemoryLog()
    for time in (1, 2, 3):
        operator = restore_operator(planned, log)
        rows = ROWS.filter(pa.compute.equal(ROWS["ts"], time))
        for name in planned.input_columns:
            if name not in rows.column_names:
                rows = rows.append_column(name, pa.nulls(len(rows), pa.int64()))
        found = [*operator.process(rows.select(planned.input_columns))]
        found += operator.advance_watermark(time)
        for each in found:
            yield from each.results.to_pylist()
        operator.save()


def test_lag_of_rows_of_one_time() -> None:
    made = outputs(LAGS)
    rows = made.result().to_pylist()
    assert {(row["v"], row["one"], row["two"]) for row in rows} == EXPECTED
    streamed = {(row["v"], row["one"], row["two"]) for row in in_micro_batches(made)}
    assert streamed == EXPECTED
    assert "of the last row of its time" in made.explain()


def test_lag_of_the_api_is_of_the_row_before() -> None:
    in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(ROWS).event_time("ts", in_order).key_by("k").over()
    found = keyed.aggregate(["v"], own=gw.lag("v"), peers=gw.lag("v", by_time=True))
    pairs = {(row["v"], row["own"], row["peers"]) for row in found.to_pylist()}
    assert {(40.75, 73.5, 73.5), (73.5, 113.0, 73.5), (4.0, 1.0, 1.0)} <= pairs


def test_the_last_row_replaces_one_of_the_same_time() -> None:
    made = outputs(LATEST)
    assert {(row["k"], row["v"]) for row in made.result().to_pylist()} == {("a", 4.0), ("b", 3.0)}
    assert "the last of equal ones" in made.explain()
    keyed = gw.stream(ROWS).key_by("k")
    earlier = keyed.top(1, "ts", columns=["v"]).to_pylist()
    assert {(row["k"], row["v"]) for row in earlier} == {("a", 1.0), ("b", 2.0)}
    with pytest.raises(QueryError, match="with a count of 1"):
        keyed.top(2, "ts", first=False)
