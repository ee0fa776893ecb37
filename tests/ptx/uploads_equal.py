"""Columns that were uploaded ahead give what the CPU gives, in every kind of query over slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import gpu_windows as gw
from gpu_windows import rules
from gpu_windows.aggregates.partials import ROWS
from gpu_windows.operators.slices import preaggregation
from gpu_windows.planning.plan import SLICE

COUNT = 600


def _rows() -> pa.Table:
    """Return rows in about the order of time: some without a time, a key or a value."""
    random = np.random.default_rng(3)
    ticks = np.sort(random.integers(0, 10**8, COUNT))
    ticks[::50] -= 9 * 10**7

    def some(values: Any, dtype: pa.DataType) -> pa.Array:
        return pa.array(values, mask=random.random(COUNT) < 0.1).cast(dtype)

    return pa.table(
        {
            "ts": some(ticks, pa.timestamp("us", "UTC")),
            "k": some(random.integers(0, 5, COUNT), pa.int64()),
            "text": some(random.choice(["a", "b", "c"], COUNT), pa.string()),
            "i": some(random.integers(0, 99, COUNT), pa.int16()),
            "f": random.random(COUNT),
            "flag": random.random(COUNT) < 0.5,
            "price": some(random.integers(0, 99, COUNT).astype(np.int32), pa.decimal128(12, 0)),
        }
    )


STRATEGY = gw.WatermarkStrategy.for_bounded_out_of_orderness("1 second")
SLIDING = gw.SlidingEventTimeWindows.of("20 seconds", "5 seconds")
FIVE = gw.TumblingEventTimeWindows.of("5 seconds")
#: Folded on the device or ranked on the host; the time itself as a value; one column for several.
MANY = {
    "n": gw.count(), "total": gw.sum("i"), "high": gw.max("f"), "flags": gw.count("flag"),
    "latest": gw.max("ts"), "mean": gw.mean("price"), "f0": gw.first("f"), "t1": gw.last("ts"),
    "some": gw.sum("i").filter("flag"), "either": gw.bool_or("flag"),
}  # fmt: skip
FEW = {"n": gw.count(), "total": gw.sum("i")}


def _keyed(*keys: str) -> Any:
    return gw.stream(_rows()).event_time("ts", STRATEGY).key_by(*keys)


DAYS = gw.CalendarWindows.of("1 day", time_zone="Europe/Berlin")
CUMULATIVE = gw.CumulativeEventTimeWindows.of("20 seconds", "5 seconds")
QUERIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "one key": (_keyed("k").window(SLIDING), MANY),
    "a text": (_keyed("text", "k").window(SLIDING), MANY),
    "a value": (_keyed("flag", "i").window(SLIDING), FEW),
    "no key": (gw.stream(_rows()).event_time("ts", STRATEGY).window_all(SLIDING), FEW),
    "gaps": (_keyed("k").window_gapfill(FIVE), FEW),
    "groupings": (_keyed("k", "text").window(SLIDING).grouping_sets(["k"], ["text"], []), FEW),
    "changed": (_keyed("k").window(SLIDING).changed_keys(), FEW),
    "days": (_keyed("k").window(DAYS), FEW),
    "cumulative": (_keyed("k").window(CUMULATIVE), MANY),
}


@pytest.mark.parametrize("rows_a_call", [37, 250])
@pytest.mark.parametrize("name", QUERIES)
def test_results_are_those_of_the_cpu(name: str, rows_a_call: int) -> None:
    windows, aggregates = QUERIES[name]
    found, expected = (
        windows.options(**how).with_outputs().aggregate(**aggregates)
        for how in ({"device": "cuda", "batch_rows": rows_a_call}, {"device": "cpu"})
    )
    assert len(found.result()) > 0
    assert found.result().equals(expected.result())
    assert len(found.rejected()) > 0, "those without a time"
    assert found.rejected().equals(expected.rejected())


@pytest.mark.parametrize("is_shrinking", [True, False], ids=["few cells", "a cell a row"])
def test_partials_before_a_shuffle_are_those_of_the_cpu(
    monkeypatch: pytest.MonkeyPatch, *, is_shrinking: bool
) -> None:
    """If there are about as many as rows, each row becomes one, and no column is uploaded."""
    monkeypatch.setattr(preaggregation, "_TRIAL_ROWS", 100)
    windows = _keyed("k" if is_shrinking else "i").window(
        FIVE if is_shrinking else gw.TumblingEventTimeWindows.of("1 millisecond")
    )

    def partials(device: Any) -> pa.Table:
        windowed = windows.options(device=device, batch_rows=37).with_outputs()
        plan = windowed.aggregate(n=gw.count(), total=gw.sum("f"), high=gw.max("f")).plan
        rows = _rows().set_column(0, "ts", _rows()["ts"].cast(pa.int64()))
        return pa.concat_tables(preaggregation.Preaggregation(plan).run(rows.to_batches(37)))

    names = ["k" if is_shrinking else "i", SLICE, ROWS.name]
    found, expected = (partials(device).select(names) for device in ("cuda", "cpu"))
    counts = pc.less(found[SLICE], preaggregation.UNUSED + rules.SENTINELS)
    others = pc.less(expected[SLICE], preaggregation.UNUSED + rules.SENTINELS)
    order = [(name, "ascending") for name in names]
    assert (
        found.filter(pc.invert(counts))
        .sort_by(order)
        .equals(expected.filter(pc.invert(others)).sort_by(order))
    )
