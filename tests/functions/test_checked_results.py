"""What functions of the user's are, return and keep is checked: errors name them and the column."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.functions.checked_results import checked_column, checked_table, is_cut
from gpu_windows.functions.process import Process
from gpu_windows.functions.vectorised import Vectorised
from gpu_windows.planning.planner import plan
from tests.datastream import custom_parts as custom
from tests.operators.joins.rows import TUMBLING, Lengths, keyed, table
from tests.operators.state.put_away import cut, put_away_after_each

COUNT = pa.schema([("n", pa.int64())])
ONE = keyed(table([("a", 1, 5)]))
TWO = keyed(table([("a", 1, 5), ("a", 2, 6)]))


class Returns(gw.functions.CoGroupFunction, gw.functions.ProcessWindowFunction):
    def __init__(self, value: Any) -> None:
        self.value = value

    def co_group(self, key: Any, context: Any, left: Any, right: Any) -> Any:
        return self.value

    def process(self, key: Any, context: Any, rows: Any) -> Any:
        return self.value


class Gives(gw.functions.VectorCoGroupFunction, gw.functions.VectorWindowFunction):
    def __init__(self, value: Any) -> None:
        self.value = value

    def co_group(self, batch: Any) -> Any:
        return self.value

    def process(self, batch: Any) -> Any:
        return self.value


def both_ways(function: Any, **declared: Any) -> list[Any]:
    """Return calls of a function, with one input and with two."""
    declared = {"output": COUNT, **declared}
    return [
        lambda: ONE.window(TUMBLING).process(function, ["v"], **declared),
        lambda: ONE.co_group(ONE).window(TUMBLING).process(function, ["v"], **declared),
    ]


@pytest.mark.parametrize("value", [{"n": 1}, None, ["n"], [{"m": 1}]])
def test_rows_are_those_declared(value: Any) -> None:
    rule = "Returns must return an iterable of dicts of exactly n"
    for call in both_ways(Returns(value)):
        with pytest.raises(errors.InvalidFunctionError, match=rule):
            call()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("text", "'text'"),
        (2**70, str(2**70)),
        (True, "True"),
        (1.5, "1.5"),
        (np.float32(-2.5), "-2.5"),
        (Decimal("0.1"), "0.1"),
        (float("nan"), "nan"),
    ],
)
def test_values_are_of_the_type_declared(value: Any, shown: str) -> None:
    for call in both_ways(Returns([{"n": 1}, {"n": value}])):
        with pytest.raises(
            errors.InvalidFunctionError, match=r"Returns must return int64"
        ) as found:
            call()
        assert shown in str(found.value.value)
        assert found.value.column == "n"


def test_whole_numbers_and_nulls_are_taken() -> None:
    values = (1, 2.0, None, np.int8(3), Decimal(4))
    for call in both_ways(Returns([{"n": value} for value in values])):
        assert call()["n"].to_pylist() == [1, 2, None, 3, 4]


def test_what_a_reduce_function_gives_is_of_the_columns_types() -> None:
    def halves(earlier: Any, later: Any) -> Any:
        return {"v": (earlier["v"] + later["v"]) / 2}

    with pytest.raises(errors.InvalidFunctionError, match=r"halves must keep int64, got 5\.5"):
        TWO.window(TUMBLING).reduce(halves, ["v"])


class Average(gw.functions.AggregateFunction):
    accumulator = pa.int64()
    result = pa.int64()

    def __init__(self, accumulator: Any, result: Any) -> None:
        self.kept, self.found = accumulator, result

    def create_accumulator(self) -> Any:
        return 0

    def add(self, row: Any, accumulator: Any) -> Any:
        return self.kept

    def get_result(self, accumulator: Any) -> Any:
        return self.found


@pytest.mark.parametrize(
    ("kept", "found", "text"),
    [
        (1, 0.5, r"Average must return int64 \(at key .*, window .*\), got 0.5"),
        (0.5, 1, r"Average must keep int64, got 0.5"),
    ],
)
def test_what_an_aggregate_of_yours_gives_and_keeps_is_as_declared(
    kept: Any, found: Any, text: str
) -> None:
    average = gw.user_aggregate(Average(kept, found), "v")
    with pytest.raises(errors.InvalidFunctionError, match=text):
        TWO.window(TUMBLING).aggregate(n=average)
    with pytest.raises(errors.InvalidFunctionError, match=text):
        TWO.window(TUMBLING).process(Returns([]), output=COUNT, aggregates={"n": average})


def test_what_is_kept_between_rows_is_as_declared_on_every_runner() -> None:
    """A fraction on the way to a whole number is refused where nothing is stored, too."""

    def there_and_back(earlier: Any, later: Any) -> Any:
        return {"gap": max(earlier["gap"], later["gap"]) + 0.5}

    windowed = custom.windowed(gw.TumblingEventTimeWindows.of("1 minute"))
    average = gw.user_aggregate(Average(0.5, 1), "gap")
    rule = "(Average|there_and_back) must keep int64"
    for outputs in (
        windowed.with_outputs().aggregate(n=average),
        windowed.with_outputs().reduce(there_and_back, ("gap",)),
    ):
        with pytest.raises(errors.InvalidFunctionError, match=rule):
            outputs.result()
        planned = plan(outputs.plan.query, bounded=False)
        with pytest.raises(errors.InvalidFunctionError, match=rule):
            put_away_after_each(planned, cut(planned.query))


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (None, "a pyarrow.Table, got NoneType"),
        ([{"n": 1}], "a pyarrow.Table, got list"),
        (pa.table({"m": [1]}), "the columns n, got m"),
        (pa.table({"n": [0.5]}), "columns of the declared types"),
        ((pa.table({"n": [1]}),), "the places of its rows.*got 1 values"),
        ((pa.table({"n": [1]}), [0], 0), "the places of its rows.*got 3 values"),
        ((pa.table({"n": [1]}), None), "the places of its rows.*got None"),
        ((pa.table({"n": [1]}), ["x"]), "the places of its rows"),
        ((pa.table({"n": [1]}), [0.7]), "the places of its rows"),
        ((pa.table({"n": [1]}), [[0]]), "the places of its rows"),
        ((pa.table({"n": [1]}), [[0], [0, 1]]), "the places of its rows"),
        ((pa.table({"n": [1]}), [1]), "ascending places below 1, got 1"),
    ],
)
def test_tables_are_those_declared(found: Any, text: str) -> None:
    for call in both_ways(Gives(found)):
        with pytest.raises(errors.InvalidFunctionError, match=f"Gives must return.*{text}"):
            call()


def test_places_may_be_many_and_none() -> None:
    for places in ([0, 0], np.zeros(2, np.uint8), pa.array([0, 0])):
        for call in both_ways(Gives((pa.table({"n": [7, 8]}), places))):
            assert call()["n"].to_pylist() == [7, 8]
    for call in both_ways(Gives((pa.table({"n": pa.array([], pa.int64())}), []))):
        assert len(call()) == 0


def test_what_is_declared_is_checked() -> None:
    for wrong in (pa.int64(), {"n": pa.int64()}):
        for call in both_ways(Returns([]), output=wrong):
            with pytest.raises(
                errors.QueryError, match=r"output= is a pyarrow.Schema.* got .*int64"
            ):
                call()
    for call in both_ways(Returns([]), rows="polars"):
        with pytest.raises(errors.QueryError, match=r"rows= is one of arrow.* got 'polars'"):
            call()
    both: Any = ONE.co_group(ONE).window(TUMBLING)
    with pytest.raises(errors.QueryError, match=r"is a pyarrow\.Schema"):
        both.process(Lengths(), ["v"], ["v"], output=["n", "m"])


@pytest.mark.parametrize("function", [None, lambda *_: [], Returns, Lengths])
def test_functions_are_instances_of_ours(function: Any) -> None:
    for call in both_ways(function):
        with pytest.raises(errors.QueryError, match=r"process takes a \w+ or a \w+, got"):
            call()
    for kind in (Process, Vectorised):
        with pytest.raises(errors.QueryError, match=r"process takes a \w+, got"):
            kind(function, ("v",), COUNT)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (0.5, pa.timestamp("us")),
        ([1, 0.5], pa.list_(pa.int64())),
        (np.array([0.5]), pa.large_list(pa.int8())),
        ([[None], [0.5]], pa.list_(pa.list_(pa.int8()))),
        ({"a": 1.0, "b": 0.5}, pa.struct([("a", pa.float64()), ("b", pa.int32())])),
        ((1.0, 0.5), pa.struct([("a", pa.float64()), ("b", pa.int32())])),
        ([("a", 0.5)], pa.map_(pa.string(), pa.int64())),
        ({0.5: "a"}, pa.map_(pa.int64(), pa.string())),
    ],
)
def test_fractions_are_found_at_any_depth(value: Any, dtype: pa.DataType) -> None:
    assert is_cut([None, value], dtype)
    with pytest.raises(errors.InvalidFunctionError, match=r"Mine must return"):
        checked_column([None, value], pa.field("n", dtype), "Mine")


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (0.5, pa.float32()),
        (Decimal("0.5"), pa.decimal128(3, 1)),
        (datetime(2024, 1, 1, tzinfo=UTC), pa.timestamp("us", "UTC")),
        ([1, None, 2.0], pa.list_(pa.int64())),
        ({"a": 0.5}, pa.struct([("a", pa.float64()), ("b", pa.int32())])),
        ([("a", 1)], pa.map_(pa.string(), pa.int64())),
        ("text", pa.string()),
    ],
)
def test_what_is_whole_is_taken(value: Any, dtype: pa.DataType) -> None:
    made = checked_column([None, value], pa.field("n", dtype), "Mine")
    assert made.equals(pa.array([None, value], dtype))


@pytest.mark.parametrize(
    ("given", "declared"),
    [
        (pa.array([1, 2]), pa.string()),
        (pa.array(["7", "8"]), pa.int32()),
        (pa.array([1, 2]), pa.bool_()),
        (pa.array([True, False]), pa.int64()),
        (pa.array(["2026-01-01", "2026-01-02"]), pa.timestamp("us", "UTC")),
        (pa.array([[1], [2]]), pa.list_(pa.string())),
        (pa.array([{"a": [1]}, {"a": [2]}]), pa.struct({"a": pa.list_(pa.string())})),
        (
            pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
            pa.map_(pa.string(), pa.bool_()),
        ),
    ],
)
def test_columns_of_other_kinds_are_refused_not_converted(given: Any, declared: Any) -> None:
    table = pa.table({"n": given})
    with pytest.raises(errors.InvalidFunctionError, match=r"declared types, got n: .*, declared"):
        checked_table(table, 2, pa.schema({"n": declared}), "Own")
    wider = pa.table({"n": pa.array([1, None], pa.int8())})
    found, _ = checked_table(wider, 2, pa.schema({"n": pa.float64()}), "Own")
    assert found["n"].to_pylist() == [1.0, None]
