"""The first rows of windows in an order."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.errors import ColumnNotFoundError, ColumnTypeError, NameClashError, QueryError
from gpu_windows.operators.build import build_operator
from gpu_windows.operators.panes.fire_at_end import FireAtEndOperator
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.kinds.window import WINDOW_START
from tests.examples import examples

SECOND = 1_000_000
MONOTONOUS = gw.WatermarkStrategy.for_monotonous_timestamps()
ROWS = pa.table(
    {
        "k": ["a", "b", "a", "a", "a", "b"],
        "ts": pa.array([SECOND * at for at in (1, 1, 2, 3, 4, 15)], pa.timestamp("us", "UTC")),
        "v": pa.array([1, 5, 7, None, 7, 2], pa.int64()),
        "text": ["x", "y", "z", None, "a", "b"],
    }
)
TEN = gw.TumblingEventTimeWindows.of("10 seconds")


def windowed(
    rows: pa.Table = ROWS, assigner: gw.functions.WindowAssigner = TEN, **options: Any
) -> gw.typing.WindowedStream:
    keyed = gw.stream(rows).event_time("ts", MONOTONOUS).key_by("k")
    return keyed.window(assigner).options(**{"device": "cpu", **options})


def found(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    return sorted(
        tuple(row[name] for name in ("k", WINDOW_START, "row_number", *names))
        for row in table.to_pylist()
    )


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_the_greatest_rows_come_first_and_of_equals_the_earlier(engine: Any) -> None:
    table = windowed(engine=engine).top(2, "v")
    assert table.column_names == ["k", WINDOW_START, "window_end", "ts", "v", "text", "row_number"]
    starts = {row[WINDOW_START].second for row in table.to_pylist()}
    assert starts == {0, 10}
    assert [(k, n, v, text) for k, _, n, v, text in found(table, "v", "text")] == [
        ("a", 1, 7, "z"), ("a", 2, 7, "a"), ("b", 1, 5, "y"), ("b", 1, 2, "b"),
    ]  # fmt: skip


def test_nulls_are_less_than_any_value() -> None:
    up = windowed().top(5, "v", descending=False, columns=["v"])
    assert [v for k, _, _, v in found(up, "v") if k == "a"] == [None, 1, 7, 7]
    down = windowed().top(5, "v", columns=["v"])
    assert [v for k, _, _, v in found(down, "v") if k == "a"] == [7, 7, 1, None]


def test_several_columns_each_with_its_direction() -> None:
    table = windowed().top(2, ["v", "text"], descending=[True, False], columns=["text"], number="n")
    assert table.column_names == ["k", WINDOW_START, "window_end", "text", "n"]
    of_a = [(row["n"], row["text"]) for row in table.to_pylist() if row["k"] == "a"]
    assert sorted(of_a) == [(1, "a"), (2, "z")]


# ---- of random rows, against the definition

values = {
    "i": st.one_of(st.none(), st.integers(-3, 3)),
    "f": st.one_of(st.none(), st.sampled_from([-math.inf, -0.0, 0.0, 1.5, math.nan])),
    "t": st.one_of(st.none(), st.sampled_from(["", "a", "b"])),
    "b": st.one_of(st.none(), st.booleans()),
    "d": st.one_of(st.none(), st.sampled_from([date(1969, 1, 1), date(2020, 2, 2)])),
}
rows = st.lists(
    st.fixed_dictionaries({"k": st.sampled_from(["a", "b"]), "at": st.integers(-30, 30), **values}),
    max_size=40,
)
TYPES = {"i": pa.int64(), "f": pa.float64(), "t": pa.string(), "b": pa.bool_(), "d": pa.date32()}
ASSIGNERS = [
    gw.TumblingEventTimeWindows.of("10 seconds"),
    gw.SlidingEventTimeWindows.of("10 seconds", "4 seconds"),
    gw.EventTimeSessionWindows.with_gap("3 seconds"),
]


def place(value: Any, *, descending: bool) -> Any:
    """Return what sorts like the value: null, numbers (one zero), NaN."""
    if value is None:
        rank = (0, 0.0)
    elif isinstance(value, float) and math.isnan(value):
        rank = (2, 0.0)
    elif isinstance(value, str):
        rank = (1, float(["", "a", "b"].index(value)))
    else:
        rank = (1, float(value.toordinal() if isinstance(value, date) else value) + 0.0)
    return tuple(-part for part in rank) if descending else rank


@examples(60)
@given(
    rows, st.sampled_from(ASSIGNERS), st.integers(1, 4), st.sampled_from(["auto", "reference"]),
    st.lists(st.sampled_from([*TYPES]), min_size=1, max_size=2, unique=True), st.booleans(),
    st.one_of(st.none(), st.integers(1, 30)),
)  # fmt: skip
def test_it_is_the_beginning_of_the_sorted_window(
    rows: list[dict[str, Any]], assigner: Any, count: int, engine: Any, by: list[str], down: bool,
    batch: int | None,
) -> None:  # fmt: skip
    table = pa.table(
        {
            "k": pa.array([row["k"] for row in rows], pa.string()),
            "ts": pa.array([row["at"] * SECOND for row in rows], pa.timestamp("us", "UTC")),
            "n": pa.array(np.arange(len(rows))),
            **{name: pa.array([row[name] for row in rows], TYPES[name]) for name in TYPES},
        }
    )
    of = windowed(table, assigner, engine=engine, batch_rows=batch)
    top = of.top(count, by, descending=down, columns=["n"])
    wanted = []
    for window in of.collect_lists("n").to_pylist():
        order = sorted(
            window["n"], key=lambda n: [place(rows[n][name], descending=down) for name in by]
        )
        first = enumerate(order[:count], 1)
        wanted += [(window["k"], window[WINDOW_START], number, n) for number, n in first]
    assert found(top, "n") == sorted(wanted)


def counting(count: int) -> pa.Table:
    ts = pa.array([1] * count, pa.timestamp("us", "UTC"))
    return pa.table({"k": ["a"] * count, "ts": ts, "v": np.arange(count)})


@pytest.mark.parametrize("rows", [10, 1_000])
def test_rows_that_are_not_among_the_first_do_not_wait_for_ever(rows: int) -> None:
    table = counting(20_000)
    made = windowed(table).with_outputs().top(3, "v")
    operator = build_operator(made.plan, device="cpu")
    most = 0
    for batch in table.to_batches(rows):
        [*operator.process(pa.Table.from_batches([batch]).select(made.plan.input_columns))]
        most = max(most, operator.state_size()["rows"])
    assert most <= 4_096 + 6 + rows


def test_evictors_see_all_rows() -> None:
    table = counting(5_000)
    made = windowed(table).evictor(gw.CountEvictor.of(10)).with_outputs().top(3, "v")
    operator = build_operator(made.plan, device="cpu")
    [*operator.process(table.select(made.plan.input_columns))]
    assert operator.state_size() == {"rows": 5_000}


def test_in_a_store_rows_grow_with_what_windows_want() -> None:
    """Segments leave rows out when they are handed over, and when they are merged."""
    table = counting(20_000)
    made = windowed(table).with_outputs().top(3, "v")
    store = MemoryLog()
    most = 0
    for batch in table.to_batches(100):
        operator = build_operator(made.plan, device="cpu")
        assert isinstance(operator, FireAtEndOperator)
        operator.restore(store)
        [*operator.process(pa.Table.from_batches([batch]).select(made.plan.input_columns))]
        operator.save()
        most = max(most, operator.state_size()["rows"])
    assert most <= 3 * 8 * 3


def test_triggers_and_evictors_mean_what_they_mean() -> None:
    early = (
        windowed().trigger(gw.CountTrigger.of(2)).with_firing_columns().top(1, "v", columns=["v"])
    )
    assert [(row["k"], row["firing"], row["v"]) for row in early.to_pylist()] == [
        ("a", 0, 7), ("a", 1, 7),
    ]  # fmt: skip
    last_two = windowed().evictor(gw.CountEvictor.of(2)).top(3, "v", columns=["v"])
    assert [v for k, _, _, v in found(last_two, "v") if k == "a"] == [7, None]


def test_the_plan_is_told() -> None:
    outputs = (
        windowed().with_outputs().top(2, ["v", "text"], descending=[True, False], columns=["text"])
    )
    assert "top 2 by v descending, text(text)" in outputs.explain()
    assert outputs.plan.query.number_columns == ("row_number",)


def test_misuse_is_told() -> None:
    for count in (0, -1, 1.5, True, None, "2"):
        with pytest.raises(QueryError, match="an integer of at least 1"):
            windowed().top(count, "v")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="by is at least one column"):
        windowed().top(1, [])
    for by, descending in ((["v"], [True, False]), ("v", 1), (["v", "ts"], [True])):
        with pytest.raises(QueryError, match="descending is a bool, or one for each"):
            windowed().top(1, by, descending=descending)  # type: ignore[arg-type]
    with pytest.raises(ColumnNotFoundError, match="w"):
        windowed().top(1, "w")
    with pytest.raises(NameClashError):
        windowed().top(1, "v", number="text")
    with pytest.raises(NameClashError):
        windowed().top(1, "v", columns=["k"])
    listed = ROWS.append_column("l", pa.array([[1]] * 6))
    with pytest.raises(ColumnTypeError, match="rows are ordered by numbers"):
        windowed(listed).top(1, "l")
    for columns in ("text", 3):
        with pytest.raises(QueryError, match="columns are a sequence"):
            windowed().top(1, "v", columns=columns)  # type: ignore[arg-type]
    for number in (None, 3, ""):
        with pytest.raises(QueryError, match="number is the name of a result column"):
            windowed().top(1, "v", number=number)  # type: ignore[arg-type]
    with pytest.raises(NameClashError, match="used inside"):
        windowed().top(1, "v", number="__slice")


def test_wide_decimals_and_large_numbers_are_orders() -> None:
    wide = pa.array([Decimal("1.5"), None, Decimal("9.25")] * 2, pa.decimal128(38, 2))
    rows = ROWS.append_column("d", wide).append_column("u", pa.array([2**63, 1] * 3, pa.uint64()))
    assert [
        d for k, _, _, d in found(windowed(rows).top(1, "d", columns=["d"]), "d") if k == "a"
    ] == [Decimal("9.25")]
    assert found(windowed(rows).top(1, "u", columns=["u"]), "u")[0][-1] == 2**63
