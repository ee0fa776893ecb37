"""What is asked of which row, how long expressions may be, and how those of joins are made."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import ExpressionError, SqlError
from gpu_windows.expressions.arrow import build_expression, compute, evaluate_condition

ROWS = pa.table(
    {
        "n": pa.array([0, 1, 2, None], pa.int32()),
        "s": pa.array(["a", "b", None, "ab"]),
        "ts": pa.array([0, 1, 2, 3], pa.timestamp("ms", "UTC")),
        "x": [0.5, float("nan"), None, -0.0],
    }
)
_AS_ROWS = {
    "large_string": ("s", pa.large_string()),
    "string_view": ("s", pa.string_view()),
    "dictionary": ("s", pa.dictionary(pa.int32(), pa.string())),
    "uint8": ("n", pa.uint8()),
    "uint64": ("n", pa.uint64()),
    "float16": ("x", pa.float16()),
    "nanoseconds": ("ts", pa.timestamp("ns", "Etc/UTC")),
    "New York": ("ts", pa.timestamp("us", "America/New_York")),
    "no zone": ("ts", pa.timestamp("us")),
}
_CONDITION = "COALESCE(s, '') <> 'b' AND n + 1.5 > 1 AND x <= 1e0 AND ts < TIMESTAMP '1970-01-02'"


@pytest.mark.parametrize("kind", _AS_ROWS)
def test_columns_are_of_any_type_for_texts_numbers_and_times(kind: str) -> None:
    name, dtype = _AS_ROWS[kind]
    at = ROWS.column_names.index(name)
    column = ROWS.column(name)
    if pa.types.is_dictionary(dtype):
        column = column.dictionary_encode()
    other = ROWS.set_column(at, name, column.cast(dtype))
    assert evaluate_condition(_CONDITION, other).to_pylist() == [True, False, None, None]
    assert compute(name, other).type == dtype


@pytest.mark.parametrize(
    "text",
    [
        " OR ".join(f"n = {each}" for each in range(2_000)),
        f"n IN ({', '.join(map(str, range(20_000)))})",
        " AND ".join(f"(n = {at} OR 1 / (n - {at}) <> 0)" for at in range(200)),
    ],
    ids=["OR", "IN", "AND"],
)
def test_conditions_may_be_long(text: str) -> None:
    assert evaluate_condition(text, ROWS).to_pylist() == [True, True, True, None]


def test_an_operand_is_computed_once() -> None:
    nested = "n"
    for each in range(3, 23):
        nested = f"NULLIF({nested}, {each})"
    assert compute(nested, ROWS).to_pylist() == [0, 1, 2, None]


def test_what_is_too_deep_is_refused_with_a_place() -> None:
    with pytest.raises(SqlError, match="nested too deeply") as caught:
        compute(" + ".join(["n"] * 5_000), ROWS)
    assert caught.value.line == 1
    condition = " OR ".join(f"n = {each}" for each in range(5_000))
    with pytest.raises(
        SqlError, match="the condition of a join has more than 5000 parts"
    ) as caught:
        build_expression(condition, ROWS.schema)
    assert caught.value.line == 1


@pytest.mark.parametrize(
    "text",
    [
        *("n <> 0 AND 6 / n > 3", "n = 0 OR 6 DIV n = 6", "CASE WHEN n > 0 THEN 2 / n > 1 END"),
        *("n IN (1, NULL)", "x <= 1", "x = x", "x <=> NULL", "NULL = n", "s LIKE 'a%'", "ts > ts"),
        *(
            "CAST(n AS STRING) = '1'",
            "COALESCE(n, 5) NOT IN (1, IF(n = 0, 1, 1 / n))",
            "n * 1.5 < 2",
        ),
        *("ts + INTERVAL '1' SECOND > TIMESTAMP '1970-01-01 00:00:01.001'", "s || 'b' = 'ab'"),
    ],
)
def test_conditions_of_joins_hold_for_the_same_rows(text: str) -> None:
    expression = build_expression(text, ROWS.schema).expression
    kept = ROWS.filter(expression).column("ts")
    assert kept == ROWS.filter(evaluate_condition(text, ROWS)).column("ts")


def test_upper_and_lower_are_not_in_conditions_of_joins() -> None:
    with pytest.raises(SqlError, match="have no UPPER and LOWER") as caught:
        build_expression("UPPER(s) = 'A'", ROWS.schema)
    assert caught.value.line == 1


def test_what_has_no_value_says_where() -> None:
    with pytest.raises(ExpressionError, match="divide by zero: 1 / n"):
        compute("2 + 1 / n > 0", ROWS)
    assert compute("1 / 0", ROWS.slice(0, 0)).to_pylist() == []


@pytest.fixture
def stream() -> Any:
    return gw.stream(ROWS).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())


def test_conditions_of_streams_and_results_fail_in_words(stream: Any) -> None:
    with pytest.raises(ExpressionError, match="divide by zero: 10 / n"):
        stream.where("10 / n > 1")
    results = (
        stream.window_all(gw.TumblingEventTimeWindows.of("1 hour"))
        .with_outputs()
        .aggregate(c=gw.count())
    )
    with pytest.raises(ExpressionError, match=r"divide by zero: 1 / \(c - 4\)"):
        results.select(where="1 / (c - 4) > 0").result()
    for odd in (5, b"n > 1", None):
        for make in (stream.where, lambda text: stream.with_columns(z=text)):
            with pytest.raises(SqlError, match="SQL must be a string that is not empty"):
                make(odd)
        with pytest.raises(SqlError, match="SQL must be a string that is not empty"):
            results.select(c=odd)


def test_readers_are_filtered_part_by_part() -> None:
    reader = pa.RecordBatchReader.from_batches(ROWS.schema, ROWS.to_batches(max_chunksize=1))
    waits = gw.WatermarkStrategy.for_monotonous_timestamps()
    stream = gw.stream(reader).event_time("ts", waits).where("n <> 0 AND 2 / n >= 1")
    windows = stream.with_columns(z="1 / n").window_all(gw.TumblingEventTimeWindows.of("1 hour"))
    assert windows.with_outputs().aggregate(z=gw.sum("z")).result().column("z").to_pylist() == [1.5]
