"""Random OVER queries and rows, and what the reference operator makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.planning.kinds.over import OverQuery
from gpu_windows.planning.planner import plan
from gpu_windows.runners.local import run
from tests.reference.run import run_by

SCHEMA = pa.schema(
    [
        pa.field("k", pa.string()),
        pa.field("ts", pa.timestamp("us", "UTC")),
        pa.field("i", pa.int64()),
        pa.field("x", pa.float64()),
        pa.field("b", pa.bool_()),
        pa.field("d", pa.decimal128(9, 2)),
        pa.field("seq", pa.int64(), nullable=False),
    ]
)
WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()

#: Aggregates of every kind of partial.
AGGREGATES: dict[str, gw.typing.Aggregate] = {
    "n": gw.count(),
    "known": gw.count("i"),
    "total": gw.sum("i"),
    "sum_x": gw.sum("x"),
    "sum_d": gw.sum("d"),
    "mean_i": gw.mean("i"),
    "least": gw.min("x"),
    "greatest": gw.max("i"),
    "all": gw.bool_and("b"),
    "spread": gw.stddev("x"),
    "first": gw.first("seq"),
    "first_known": gw.first("i", ignore_nulls=True),
    "last": gw.last("i"),
    "at_least": gw.arg_min("seq", "x"),
    "at_most": gw.arg_max("seq", "i"),
    "at_last_most": gw.arg_max("seq", "i", first=False),
    "total_if": gw.sum("i").filter("b"),
    "first_if": gw.first("seq").filter("b"),
    "different": gw.count_distinct("i"),
    "different_x": gw.count("x").distinct(),
    "different_if": gw.count_distinct("d").filter("b"),
    "sum_once": gw.sum("i").distinct(),
    "sum_d_once": gw.sum("d").distinct(),
    "mean_once": gw.mean("i").distinct().filter("b"),
    "most_once": gw.max("x").distinct(),
}
#: Results that are sums of floats in another order.
ROUGH = ("sum_x", "spread")


def range_of(preceding: int | None, following: int | None = 0) -> gw.Range:
    """Return a frame of ticks."""
    return gw.Range(
        *(None if each is None else timedelta(microseconds=each) for each in (preceding, following))
    )


@dataclass(frozen=True)
class Case:
    """Rows, and aggregates over frames of them."""

    rows: pa.Table
    aggregates: Mapping[str, gw.typing.Aggregate | gw.typing.Framed]

    def query(self, **options: Any) -> OverQuery:
        """Return the query."""
        keyed = gw.stream(self.rows).event_time("ts", WATERMARKS).key_by("k")
        over = keyed.over().options(**options)
        query = over.with_outputs().aggregate(["seq"], **self.aggregates).plan.query
        assert isinstance(query, OverQuery)
        return replace(query, schema=SCHEMA)


def result(case: Case, engine: str = "auto", **options: Any) -> pa.Table:
    """Return what a bounded query gives, in order of arrival of its rows."""
    with run_by(engine):
        found = run(plan(case.query(**options), bounded=True), case.rows)
    return found.results.sort_by("seq")


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    """Assert that results are equal: sums of floats but for rounding."""
    assert found.column_names == expected.column_names
    for name in found.column_names:
        ours, its = found.column(name).to_pylist(), expected.column(name).to_pylist()
        if not name.startswith(ROUGH):
            assert ours == its, name
            continue
        for left, right in zip(ours, its, strict=True):
            assert (left is None) == (right is None), name
            if left is not None:
                np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9, err_msg=name)


def rows_of(seed: int, count: int, *, keys: int = 3, ticks: int = 60) -> pa.Table:
    """Make rows: values are multiples of a quarter, some are null."""
    random = np.random.default_rng(seed)

    def some(values: Any) -> pa.Array:
        return pa.array(values, from_pandas=False, mask=random.random(count) < 0.15)

    keys_of = [None if k == 0 else f"k{k}" for k in random.integers(0, keys, count)]
    times = random.integers(-ticks, ticks, count)
    unscaled = random.integers(-999, 999, count)
    decimals = pa.array([Decimal(int(each)) / 4 for each in unscaled], pa.decimal128(9, 2))
    columns = [
        pa.array(keys_of, pa.string()),
        pa.array(times).cast(pa.timestamp("us", "UTC")),
        some(random.integers(-(1 << 40), 1 << 40, count)),
        some(random.integers(-400, 400, count) / 4),
        some(random.integers(0, 2, count).astype(np.bool_)),
        decimals,
        pa.array(np.arange(count)),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


@st.composite
def frames(draw: st.DrawFn, *, ahead: bool = True) -> gw.typing.Frame:
    """Draw a frame; ``ahead``: it may hold rows to come."""
    bounds = st.none() | st.integers(-4 if ahead else 0, 40)
    preceding = draw(bounds)
    most = None if preceding is None else preceding
    least = -4 if most is None else max(-most, -4)
    following = draw(st.integers(least, 12) | st.none()) if ahead else 0
    if draw(st.booleans()):
        return range_of(preceding, following)
    few = None if preceding is None else min(preceding, 7)
    return gw.Rows(few, following if following is None or few is None else max(following, -few))


@st.composite
def cases(draw: st.DrawFn, most: int = 40, *, ahead: bool = True) -> Case:
    """Draw a case."""
    rows = rows_of(
        draw(st.integers(0, 1 << 20)),
        draw(st.integers(0, most)),
        keys=draw(st.integers(1, 4)),
        ticks=draw(st.sampled_from([5, 60, 4_000])),
    )
    chosen = draw(st.lists(st.sampled_from([*AGGREGATES]), min_size=1, max_size=4, unique=True))
    made: dict[str, gw.typing.Aggregate | gw.typing.Framed] = {
        name: AGGREGATES[name].over(draw(frames(ahead=ahead))) for name in chosen
    }
    if draw(st.booleans()):
        made |= {
            "number": gw.row_number(),
            "rank": gw.rank(),
            "dense": gw.dense_rank(),
            "before": gw.lag("seq", 2),
        }
    return Case(rows, made)
