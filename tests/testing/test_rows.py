"""Tables are compared without regard to order, and a message shows what differs."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pytest

from gpu_windows.errors import QueryError
from gpu_windows.testing import assert_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [{"k": "a", "n": 1}, {"k": "b", "n": 2}, {"k": "b", "n": 2}]


@pytest.mark.parametrize(
    "found", [ROWS[::-1], pa.Table.from_pylist(ROWS), pd.DataFrame(ROWS), iter(ROWS)]
)
def test_equal_in_any_order(found: Any) -> None:
    assert_rows(found, ROWS)


def test_rows_of_spark(spark: SparkSession) -> None:
    assert_rows(spark.createDataFrame(ROWS), ROWS)


def test_the_message_shows_the_difference() -> None:
    with pytest.raises(AssertionError) as error:
        assert_rows([*ROWS[:2], {"k": "c", "n": 3}], ROWS)
    assert str(error.value).splitlines() == [
        "rows differ: 3 rows, 3 expected (k, n)",
        "  - 'b', 2",
        "  + 'c', 3",
        "  (- expected, + found)",
    ]


def test_many_differences_are_cut() -> None:
    with pytest.raises(AssertionError, match=r"\n  \+ \.\.\. 990 more"):
        assert_rows([{"n": n} for n in range(1000)], [])


@pytest.mark.parametrize(
    ("found", "wanted", "options", "says"),
    [
        (ROWS[:1], [], {}, "rows differ: 1 rows, 0 expected"),
        ([], ROWS[:1], {}, "rows differ: 0 rows, 1 expected"),
        (ROWS, ROWS[:2], {}, "- expected"),
        (ROWS[::-1], ROWS, {"in_order": True}, "not their order: row 0 differs"),
        (ROWS[:2], ROWS, {"in_order": True}, "rows differ"),
        ([{"k": 1, "x": 2}], [{"k": 1}], {}, "not expected: x"),
        ([{"k": 1}], [{"k": 1, "x": 2}], {}, "no column x: there are k"),
        ([{"v": 0.1 + 0.2}], [{"v": 0.3}], {}, "0.30000000000000004"),
        ([{"v": None}], [{"v": 0}], {}, "- 0"),
    ],
)
def test_what_differs(found: Any, wanted: Any, options: Any, says: str) -> None:
    with pytest.raises(AssertionError, match=says.replace("+", r"\+")):
        assert_rows(found, wanted, **options)


@pytest.mark.parametrize(
    ("found", "wanted", "options"),
    [
        ([], [], {}),
        ([{"v": math.nan}], [{"v": math.nan}], {}),
        ([{"v": 0.1 + 0.2}], [{"v": 0.3}], {"digits": 12}),
        ([{"k": 1, "x": 2}], [{"k": 1}], {"columns": ["k"]}),
        ([{"v": [1, {"a": [2]}]}], [{"v": [1, {"a": [2]}]}], {}),
        (
            [{"t": datetime(2026, 5, 1, 12, tzinfo=UTC)}],
            [{"t": datetime(2026, 5, 1, 14, tzinfo=timezone(timedelta(hours=2)))}],
            {},
        ),
    ],
)
def test_what_is_equal(found: Any, wanted: Any, options: Any) -> None:
    assert_rows(found, wanted, **options)


INSTANT = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("text", ["2026-05-01 12:00:00", "2026-05-01T14:00+02:00"])
def test_times_that_are_expected_may_be_text(text: str) -> None:
    assert_rows([{"t": INSTANT}, {"t": None}], [{"t": None}, {"t": text}])
    assert_rows(pa.table({"t": [INSTANT]}), [{"t": text}])


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ([{"t": INSTANT}], [{"t": "2026-05-01 12:00:01"}]),
        ([{"t": INSTANT}], [{"t": "noon"}]),
        ([{"t": INSTANT.replace(tzinfo=None)}], [{"t": "2026-05-01 12:00:00+00:00"}]),
        ([{"t": "2026-05-01 12:00:00"}], [{"t": INSTANT}]),
        ([{"t": INSTANT}], pa.table({"t": ["2026-05-01 12:00:00"]})),
    ],
)
def test_text_that_is_not_the_time(found: Any, wanted: Any) -> None:
    with pytest.raises(AssertionError, match="rows differ"):
        assert_rows(found, wanted)
    assert_rows([{"t": INSTANT.replace(tzinfo=None)}], [{"t": "2026-05-01 12:00:00"}])


@pytest.mark.parametrize("other", ["rows", {"n": 1}, 1, [1]])
def test_what_is_no_table(other: Any) -> None:
    with pytest.raises(QueryError, match="rows are an Arrow table"):
        assert_rows(other, ROWS)
