"""Random inputs and queries that several tests share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.aggregates.definitions import bind
from gpu_windows.functions.window import Aggregates
from gpu_windows.operators.counters import Counters
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.watermarks import WatermarkStrategy
from gpu_windows.vocabulary.windows import (
    CumulativeEventTimeWindows,
    SlicedAssigner,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("part", pa.int32()),
        ("ts", pa.int64()),
        ("i", pa.int64()),
        ("small", pa.int16()),
        ("f", pa.float64()),
        ("d", pa.decimal128(12, 3)),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("text", pa.string()),
    ]
)

#: Aggregates of every kind over columns of `SCHEMA`.
AGGREGATES = {
    "rows": Aggregate("count"),
    "counted": Aggregate("count", "f"),
    "sum_i": Aggregate("sum", "i"),
    "sum_small": Aggregate("sum", "small"),
    "sum_f": Aggregate("sum", "f"),
    "sum_d": Aggregate("sum", "d"),
    "min_i": Aggregate("min", "i"),
    "max_f": Aggregate("max", "f"),
    "min_f": Aggregate("min", "f"),
    "max_day": Aggregate("max", "day"),
    "min_d": Aggregate("min", "d"),
    "mean_i": Aggregate("mean", "i"),
    "mean_f": Aggregate("mean", "f"),
    "mean_d": Aggregate("mean", "d"),
    "var_f": Aggregate("variance", "f"),
    "dev_i": Aggregate("stddev", "i", ddof=0),
    "first_text": Aggregate("first", "text"),
    "last_text": Aggregate("last", "text", skip_nulls=True),
    "at_min": Aggregate("arg_min", "text", "f"),
    "at_max": Aggregate("arg_max", "i", "small"),
    "every": Aggregate("bool_and", "b"),
    "any": Aggregate("bool_or", "b"),
    "sum_i_if": Aggregate("sum", "i").filter("b"),
    "last_text_if": Aggregate("last", "text").filter("b"),
    "at_last_min": Aggregate("arg_min", "i", "small", first=False),
}
#: Further ones with conditions, and of the last of equals.
MORE = {
    "rows_if": Aggregate("count").filter("b"),
    "mean_d_if": Aggregate("mean", "d").filter("b"),
    "min_f_if": Aggregate("min", "f").filter("b"),
    "dev_i_if": Aggregate("stddev", "i").filter("b"),
    "at_last_max": Aggregate("arg_max", "text", "b", first=False),
    "at_max_if": Aggregate("arg_max", "i", "small").filter("b"),
}


@st.composite
def assigners(draw: st.DrawFn) -> SlicedAssigner:
    """Tumbling, sliding (dividing or not, with gaps or not) and cumulative windows."""
    size = draw(st.integers(1, 30))
    kind = draw(st.sampled_from(["tumbling", "sliding", "sliding", "cumulative"]))
    if kind == "tumbling":
        return TumblingEventTimeWindows(size, draw(st.integers(1 - size, size - 1)))
    if kind == "cumulative":
        steps = draw(st.integers(1, 5))
        return CumulativeEventTimeWindows(size * steps, size, draw(st.integers(1 - size, size - 1)))
    slide = draw(st.integers(1, 30))
    return SlidingEventTimeWindows(size, slide, draw(st.integers(1 - slide, slide - 1)))


@st.composite
def tables(draw: st.DrawFn, *, most: int = 40, exact: bool = False) -> pa.Table:
    """Rows of `SCHEMA`; with ``exact`` the sums of floats do not depend on their order."""
    quarters = st.integers(-40, 40).map(lambda n: n / 4)
    odd = st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 1e300])
    floats = quarters if exact else st.one_of(quarters, quarters, odd)
    row = st.fixed_dictionaries(
        {
            "key": st.one_of(st.none(), st.sampled_from(["a", "b", ""])),
            "part": st.one_of(st.none(), st.integers(0, 2)),
            "ts": st.one_of(st.none(), *[st.integers(-60, 60)] * 9),
            "i": st.one_of(st.none(), st.integers(-(2**40), 2**40)),
            "small": st.one_of(st.none(), st.integers(-(2**15), 2**15 - 1)),
            "f": st.one_of(st.none(), floats),
            "d": st.one_of(
                st.none(), st.integers(-(10**9), 10**9).map(lambda n: Decimal(n) / 1000)
            ),
            "b": st.one_of(st.none(), st.booleans()),
            "day": st.one_of(st.none(), st.dates()),
            "text": st.one_of(st.none(), st.sampled_from(["x", "y", "zz", ""])),
        }
    )
    return pa.Table.from_pylist(draw(st.lists(row, max_size=most)), schema=SCHEMA)


def query(assigner: Any, schema: pa.Schema = SCHEMA, **changes: Any) -> WindowQuery:
    """Return a query with every aggregate of `AGGREGATES`, keyed by (key, part)."""
    aggregates = changes.pop("aggregates", AGGREGATES)
    bound = tuple(bind(name, aggregate, schema) for name, aggregate in aggregates.items())
    settings: dict[str, Any] = {
        "schema": schema,
        "time": "ts",
        "watermarks": WatermarkStrategy(0),
        "keys": ("key", "part"),
        "assigner": assigner,
        "function": Aggregates(bound),
        "options": Options(device="cpu"),
    }
    return WindowQuery(**{**settings, **changes})


def rows_of(table: pa.Table, digits: int = 9) -> list[tuple[Any, ...]]:
    """Return rows in a fixed order; floats to ``digits`` digits, NaN equal to itself."""
    return rounded((tuple(row.values()) for row in table.to_pylist()), digits)


def rounded(rows: Iterable[tuple[Any, ...]], digits: int = 9) -> list[tuple[Any, ...]]:
    """Return rows in a fixed order; floats to ``digits`` digits, NaN equal to itself."""

    def plain(value: Any) -> Any:
        if isinstance(value, float):
            return "NaN" if math.isnan(value) else float(f"{value:.{digits}g}") + 0.0
        return value

    return sorted((tuple(plain(value) for value in row) for row in rows), key=repr)


def counters_of(metrics: Any) -> Counters:
    """Return the counters of a metrics frame, of either runner."""
    table = metrics if isinstance(metrics, pa.Table) else metrics.toArrow()
    (row,) = table.to_pylist()
    return Counters(**{**row, "user": tuple(row["user"])})
