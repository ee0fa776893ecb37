"""The aggregates of the reference operator, the oracle of the kernels, against SQL's rules."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.errors import ArithmeticOverflowError, QueryError
from gpu_windows.functions.window import Collect, Reduce
from gpu_windows.operators.row_at_a_time.operator import ReferenceOperator
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.triggers import Row
from gpu_windows.vocabulary.windows import TumblingEventTimeWindows
from tests.planning.queries import query

NAN, INF = math.nan, math.inf
INSTANT = pa.timestamp("us", tz="UTC")


def over(
    dtype: pa.DataType, values: list[Any], by: list[Any] | None = None, **changes: Any
) -> pa.Table:
    """Put values, in order of arrival, into one window and return its row."""
    columns = {
        "key": pa.array(["k"] * len(values), pa.string()),
        "ts": pa.array([1] * len(values), pa.int64()),
        "v": pa.array(values, dtype),
        "by": pa.array(by or range(len(values)), pa.float64()),
    }
    batch = pa.table(columns)
    made = query(
        TumblingEventTimeWindows(10),
        batch.schema,
        keys=("key",),
        options=Options(engine="reference"),
        **{"aggregates": {}, **changes},
    )
    planned = plan(made, bounded=True)
    operator = ReferenceOperator(planned)
    emissions = [*operator.process(batch), *operator.advance_watermark(LONG_MAX)]
    results = pa.concat_tables([emission.results for emission in emissions])
    assert results.schema == planned.result_schema
    return results


def aggregated(
    function: str,
    dtype: pa.DataType,
    values: list[Any],
    by: list[Any] | None = None,
    **settings: Any,
) -> Any:
    aggregate = Aggregate(function, "v", None if by is None else "by", **settings)
    (result,) = over(dtype, values, by, aggregates={"x": aggregate})["x"].to_pylist()
    return result


def same(left: Any, right: Any) -> bool:
    both_nan = left != left and right != right  # noqa: PLR0124
    return both_nan or (left == right and type(left) is type(right))


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        ("count", 0),
        ("sum", None),
        ("min", None),
        ("max", None),
        ("mean", None),
        ("variance", None),
        ("stddev", None),
        ("first", None),
        ("last", None),
    ],
)
@pytest.mark.parametrize("dtype", [pa.int64(), pa.float64(), pa.decimal128(5, 2)], ids=str)
def test_over_nulls_alone(function: str, wanted: Any, dtype: pa.DataType) -> None:
    assert aggregated(function, dtype, [None, None]) == wanted


@pytest.mark.parametrize(
    ("function", "values", "wanted"),
    [
        ("count", [1, None, 3], 2),
        ("sum", [1, None, 3], 4),
        ("mean", [1, None, 4], 2.5),
        ("min", [3, None, -1], -1),
        ("max", [3, None, -1], 3),
        ("first", [None, 1], None),
        ("last", [1, None], None),
    ],
)
def test_integers(function: str, values: list[Any], wanted: Any) -> None:
    assert same(aggregated(function, pa.int64(), values), wanted)


def test_first_and_last_may_ignore_nulls() -> None:
    assert aggregated("first", pa.string(), [None, "a", "b"], skip_nulls=True) == "a"
    assert aggregated("last", pa.string(), ["a", "b", None], skip_nulls=True) == "b"


def test_a_sum_of_bigint_may_pass_through_any_range_but_not_end_there() -> None:
    assert aggregated("sum", pa.int64(), [LONG_MAX, LONG_MAX, LONG_MIN]) == LONG_MAX - 1
    for values in ([LONG_MAX, 1], [LONG_MIN, -1]):
        with pytest.raises(ArithmeticOverflowError, match="must fit BIGINT"):
            aggregated("sum", pa.int64(), values)


def test_a_mean_of_bigint_is_exact_before_it_is_rounded() -> None:
    assert aggregated("mean", pa.int64(), [LONG_MAX, LONG_MAX]) == float(LONG_MAX)
    assert aggregated("mean", pa.int64(), [2**53, 1, -(2**53)]) == 1 / 3


def test_a_sum_of_floats_is_taken_in_order_of_arrival() -> None:
    assert aggregated("sum", pa.float64(), [1e16, 1.0, 1.0, -1e16]) == 0.0
    assert aggregated("sum", pa.float64(), [1.0, 1.0, 1e16, -1e16]) == 2.0
    assert aggregated("sum", pa.float32(), [0.1, 0.2]) == float(pa.scalar(0.1, pa.float32())) + (
        float(pa.scalar(0.2, pa.float32()))
    )


@pytest.mark.parametrize(
    ("function", "values", "wanted"),
    [
        ("sum", [1.0, NAN], NAN),
        ("sum", [INF, -INF], NAN),
        ("min", [NAN, 1.0], 1.0),
        ("min", [NAN, INF], INF),
        ("min", [NAN, NAN], NAN),
        ("max", [1.0, NAN, INF], NAN),
        ("max", [-INF, -1.0], -1.0),
        ("variance", [1.0, INF], NAN),
    ],
)
def test_nan_is_larger_than_any_number(function: str, values: list[Any], wanted: float) -> None:
    assert same(aggregated(function, pa.float64(), values), wanted)


@pytest.mark.parametrize(
    ("values", "ddof", "wanted"),
    [
        ([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0], 0, 4.0),
        ([1.0, 3.0], 1, 2.0),
        ([1.0], 1, None),
        ([1.0], 0, 0.0),
        ([1e9 + 1, 1e9 + 2, 1e9 + 3], 1, 1.0),
    ],
)
def test_variance(values: list[float], ddof: int, wanted: float | None) -> None:
    assert aggregated("variance", pa.float64(), values, ddof=ddof) == wanted
    root = None if wanted is None else math.sqrt(wanted)
    assert aggregated("stddev", pa.float64(), values, ddof=ddof) == root


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (["0.01", "0.00", "0.00"], "0.003333"),
        (["0.01", "0.01", "0.00"], "0.006667"),
        (["-0.02", "-0.03"], "-0.025000"),
        (["0.01"] + ["0.00"] * 31, "0.000313"),  # 0.0003125
        (["-0.01"] + ["0.00"] * 31, "-0.000313"),  # half up is away from zero
        (["999.99", "999.99"], "999.990000"),
    ],
)
def test_a_mean_of_decimals_is_rounded_half_up(values: list[str], wanted: str) -> None:
    mean = aggregated("mean", pa.decimal128(5, 2), list(map(Decimal, values)))
    assert str(mean) == wanted


def test_a_sum_of_decimals_has_ten_more_digits() -> None:
    dtype = pa.decimal128(18, 2)
    most = Decimal("9" * 16 + ".99")
    aggregate = {"x": Aggregate("sum", "v")}
    result = over(dtype, [most, most, None], aggregates=aggregate)
    assert result.schema.field("x").type == pa.decimal128(28, 2)
    assert result["x"].to_pylist() == [Decimal("19999999999999999.98")]


@pytest.mark.parametrize(
    ("function", "by", "wanted"),
    [
        ("arg_min", [2.0, 1.0, 1.0], "b"),  # ties: the earlier
        ("arg_max", [2.0, 1.0, 2.0], "a"),
        ("arg_min", [None, 5.0, None], "b"),  # a row without an ordering is passed over
        ("arg_min", [None, None, None], None),
        ("arg_min", [NAN, 7.0, NAN], "b"),
        ("arg_max", [1.0, NAN, INF], "b"),
        ("arg_min", [0.0, -0.0, 1.0], "a"),
    ],
)
def test_arg_min_and_arg_max(function: str, by: list[Any], wanted: str | None) -> None:
    assert aggregated(function, pa.string(), ["a", "b", "c"], by) == wanted


def test_arg_min_may_give_the_null_of_its_row() -> None:
    assert aggregated("arg_min", pa.string(), [None, "b"], [1.0, 2.0]) is None


@pytest.mark.parametrize(
    ("values", "every", "some"),
    [
        ([True, None], True, True),
        ([True, False], False, True),
        ([False, None], False, False),
        ([None], None, None),
    ],
)
def test_booleans(values: list[Any], every: bool | None, some: bool | None) -> None:
    assert aggregated("bool_and", pa.bool_(), values) is every
    assert aggregated("bool_or", pa.bool_(), values) is some


@pytest.mark.parametrize("function", ["min", "first"])
@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (INSTANT, datetime(1, 1, 1, tzinfo=UTC)),
        (pa.timestamp("us", tz="Asia/Kathmandu"), datetime(1969, 12, 31, 23, 59, tzinfo=UTC)),
        (pa.date32(), date(1960, 2, 29)),
        (pa.decimal128(18, 18), Decimal("0.000000000000000001")),
        (pa.int8(), -128),
        (pa.float32(), 0.5),
    ],
    ids=str,
)
def test_results_keep_the_type_of_the_column(function: str, dtype: pa.DataType, value: Any) -> None:
    result = over(dtype, [value, None], aggregates={"x": Aggregate(function, "v")})
    assert result.schema.field("x").type == dtype
    assert result["x"].to_pylist() == [value]


def test_times_that_python_does_not_know_go_through() -> None:
    before_year_1 = pa.array([-(10**17)], pa.int64()).cast(INSTANT)
    result = over(INSTANT, before_year_1, aggregates={"x": Aggregate("max", "v")})
    assert result["x"].cast(pa.int64()).to_pylist() == [-(10**17)]
    collected = over(INSTANT, before_year_1, function=Collect(("v",)))
    assert collected["v"].combine_chunks().flatten().cast(pa.int64()).to_pylist() == [-(10**17)]


# ---- reduce


def _longer(earlier: Row, later: Row) -> Row:
    assert isinstance(earlier["v"], datetime), "user code sees Python's own values"
    assert isinstance(later["v"], datetime)
    return {"v": later["v"] + timedelta(days=1)}


def test_reduce_sees_pythons_own_values() -> None:
    moment = datetime(2020, 1, 1, tzinfo=UTC)
    result = over(INSTANT, [moment, moment], function=Reduce(_longer, ("v",)))
    assert result["v"].to_pylist() == [moment + timedelta(days=1)]


def test_reduce_of_one_row_is_the_row() -> None:
    result = over(pa.int64(), [7], function=Reduce(_longer, ("v",)))
    assert result["v"].to_pylist() == [7]


def test_reduce_must_return_its_columns() -> None:
    with pytest.raises(QueryError, match="must return exactly v"):
        over(pa.int64(), [1, 2], function=Reduce(lambda left, _: {**left, "w": 1}, ("v",)))
