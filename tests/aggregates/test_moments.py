"""Variances of values far from 0 and near each other, on every way to evaluate them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.aggregates.partials import Combine
from gpu_windows.errors import StateCorruptedError
from gpu_windows.operators.columns.partials import MomentsColumn
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import PartialsBy, is_plan_of
from tests.examples import examples
from tests.kernels.moments_cases import ACCURACY, FAR, squares_of
from tests.lanes import quick
from tests.operators.state.restarted import Restarted

MONOTONOUS = gw.WatermarkStrategy.for_monotonous_timestamps()
AGGREGATES = {
    "of_f": gw.variance("f"),
    "of_i": gw.variance("i", ddof=0),
    "of_d": gw.variance("d"),
    "dev_f": gw.stddev("f"),
    "if_f": gw.variance("f").filter("b"),
}
SIZE, STEP, GAP = 40, 10, 7


def rows_of(seed: int, count: int, far: int) -> list[dict[str, Any]]:
    """Make rows in order of time, whose values are so many standard deviations from 0."""
    random = np.random.default_rng(seed)
    floats = (far + random.standard_normal(count)) * 10.0 ** random.integers(-6, 6)
    return [
        {
            "k": "ab"[int(random.integers(0, 2))],
            "ts": 3 * number + 20 * (number // 9),
            "f": None if random.random() < 0.1 else float(floats[number]),
            "i": far * (1 << 30) // 9 + int(random.integers(-(10**8), 10**8)),
            "d": Decimal(far * 10**6 + int(random.integers(-(10**6), 10**6))).scaleb(-2),
            "b": bool(random.random() < 0.7),
            "seq": number,
        }
        for number in range(count)
    ]


def table_of(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Make a table of rows, in seconds since the epoch."""
    schema = pa.schema(
        [
            ("k", pa.string()), ("ts", pa.int64()), ("f", pa.float64()), ("i", pa.int64()),
            ("d", pa.decimal128(18, 2)), ("b", pa.bool_()), ("seq", pa.int64()),
        ]
    )  # fmt: skip
    return pa.Table.from_pylist(list(rows), schema)


def check(result: dict[str, Any], inside: Iterable[dict[str, Any]]) -> None:
    """Compare a result with the rows of which it is, by exact arithmetic."""
    rows = list(inside)
    for name, column, ddof in (("of_f", "f", 1), ("of_i", "i", 0), ("of_d", "d", 1)):
        _compare(result[name], [row[column] for row in rows], ddof)
    _compare(result["if_f"], [row["f"] for row in rows if row["b"]], 1)
    variance = result["of_f"]
    assert result["dev_f"] == (None if variance is None else math.sqrt(variance))


def _compare(found: float | None, values: Iterable[Any], ddof: int) -> None:
    known = [Fraction(value) for value in values if value is not None]
    if len(known) <= ddof:
        assert found is None
        return
    wanted = squares_of(known) / (len(known) - ddof)
    assert found is not None
    assert abs(Fraction(found) - wanted) <= ACCURACY * wanted


def within(result: dict[str, Any], rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of the key and window of a result."""
    start, end = result["window_start"], result["window_end"]
    return [row for row in rows if row["k"] == result["k"] and start <= row["ts"] < end]


WINDOWS = {
    "tumbling": gw.TumblingEventTimeWindows(SIZE),
    "sliding": gw.SlidingEventTimeWindows(SIZE, STEP),
    "sessions": gw.EventTimeSessionWindows(GAP),
    "cumulative": gw.CumulativeEventTimeWindows(SIZE, STEP),
}
#: Seed of the rows, how many there are, how many standard deviations from 0.
CASES = st.tuples(st.integers(0, 1 << 20), st.integers(0, 60), st.sampled_from(FAR))


def keyed(rows: Sequence[dict[str, Any]]) -> gw.typing.KeyedStream:
    return gw.stream(table_of(rows)).event_time("ts", MONOTONOUS).key_by("k")


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("name", quick(WINDOWS, "sliding"))
@examples(20)
@given(CASES)
def test_windows(name: str, engine: Any, case: tuple[int, int, int]) -> None:
    rows = rows_of(*case)
    found = keyed(rows).window(WINDOWS[name]).options(engine=engine).aggregate(**AGGREGATES)
    for result in found.to_pylist():
        check(result, within(result, rows))


@pytest.mark.parametrize("name", quick(WINDOWS, "sessions"))
@pytest.mark.parametrize("trigger", [None, gw.ContinuousEventTimeTrigger(30)])
@examples(12)
@given(CASES, st.integers(1, 20))
def test_streams(
    name: str, trigger: gw.functions.Trigger | None, case: tuple[int, int, int], step: int
) -> None:
    """In micro-batches, the state put away after each."""
    rows = rows_of(*case)
    windows = keyed(rows).window(WINDOWS[name])
    made = windows if trigger is None else windows.trigger(trigger)
    query = Restarted(made.with_outputs().aggregate(**AGGREGATES).plan.query)
    for begin in range(0, len(rows), step):
        part = rows[begin : begin + step]
        for result in query.micro_batch(part, part[-1]["ts"] - 1):
            seen = within(result, rows[: begin + step])
            check(result, seen)


FRAMES: dict[str, tuple[gw.typing.Frame, int]] = {
    "of rows": (gw.Rows(4), 4),
    "of all so far": (gw.Rows(None), 10**9),
}


@pytest.mark.parametrize("name", FRAMES)
@examples(20)
@given(CASES)
def test_frames(name: str, case: tuple[int, int, int]) -> None:
    frame, back = FRAMES[name]
    rows = rows_of(*case)
    over = keyed(rows).over(frame)
    for result in over.aggregate(["seq"], **AGGREGATES).to_pylist():
        earlier = [r for r in rows if r["k"] == result["k"] and r["seq"] <= result["seq"]]
        check(result, earlier[-1 - back :])


def test_spark_does_not_make_them() -> None:
    outputs = (
        keyed(rows_of(1, 9, 0))
        .window(WINDOWS["tumbling"])
        .with_outputs()
        .aggregate(of_f=gw.variance("f"))
    )
    assert outputs.plan.partials_by is PartialsBy.KERNELS


def test_state_of_another_form_is_refused() -> None:
    """A mean in one word: what was written is refused, not read as something else."""
    outputs = (
        keyed(rows_of(1, 9, 0))
        .window(WINDOWS["tumbling"])
        .with_outputs()
        .aggregate(of_f=gw.variance("f"))
    )
    assert is_plan_of(outputs.plan, WindowQuery)
    partial = next(each for each in outputs.plan.partials if each.combine is Combine.MOMENTS)
    column = MomentsColumn(partial, partial.name)
    names = [f"{partial.name}{end}" for end in "nms"]
    with pytest.raises(StateCorruptedError, match="columns of the partials that were saved"):
        column.from_table(pa.table({names[0]: [1], names[1]: [2.0], names[2]: [0.0]}))


@examples(40)
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=60), st.integers(1, 7))
def test_rows_of_other_keys_change_no_bit(values: list[float], others: int) -> None:
    """Nor do other shards, which put other keys beside each other."""
    alone = [("a", at, value) for at, value in enumerate(values)]
    among = [row for own in alone for row in (*[("b", own[1], 1.5)] * others, own)]
    assert variances_of_a(alone) == variances_of_a(among)


def variances_of_a(rows: list[tuple[str, int, float]]) -> list[list[str]]:
    """Return the variances of a key, to the bit, over sliding windows and frames."""
    keys, seconds, values = zip(*rows, strict=True)
    times = pa.array(seconds, pa.int64()).cast(pa.timestamp("s", "UTC"))
    table = pa.table({"k": list(keys), "ts": times, "v": list(values)})
    keyed = gw.stream(table).event_time("ts", MONOTONOUS).key_by("k")
    windows = keyed.window(gw.SlidingEventTimeWindows.of("20 seconds", "5 seconds"))
    frames = (gw.Rows(4), gw.Range(), gw.Range("9 seconds"))
    over: list[Any] = [windows, *map(keyed.over, frames)]
    found = [each.with_outputs().aggregate(s=gw.variance("v")).result() for each in over]
    return [[repr(r["s"]) for r in each.to_pylist() if r["k"] == "a"] for each in found]
