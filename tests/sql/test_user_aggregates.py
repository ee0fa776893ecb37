"""Aggregates of users in SQL: by name, over expressions, in scripts, and what is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import QueryError, SqlError


class Product(gw.functions.AggregateFunction):
    accumulator = result = pa.float64()

    def __init__(self, column: str) -> None:
        self.column = column

    def create_accumulator(self) -> float:
        return 1.0

    def add(self, row: Any, accumulator: float) -> float:
        return accumulator * float(row[self.column])

    def get_result(self, accumulator: float) -> float:
        return accumulator


ROWS = pa.table({"k": list("aab"), "ts": [1, 2, 3], "v": [2.0, 3.0, 4.0]})
FUNCTIONS = {"prod": lambda column: gw.user_aggregate(Product(column), column)}
TEXT = """
SELECT k, PROD(v * 2) AS p, prod(v) + 1 AS q, High(v) AS h
FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR) GROUP BY k, window_start, window_end
HAVING Prod(v) > 4
"""
BOTH = {**FUNCTIONS, "high": gw.max}


def stream() -> gw.typing.TimedStream:
    in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
    return gw.stream(ROWS).event_time("ts", in_order)


def test_functions_are_found_in_any_case() -> None:
    found = gw.sql(TEXT, BOTH, t=stream()).result().to_pylist()
    assert found == [{"k": "a", "p": 24.0, "q": 7.0, "h": 3.0}]


def test_a_script_may_create_functions() -> None:
    text = f"CREATE TEMPORARY FUNCTION prod AS 'my.Product' LANGUAGE PYTHON; {TEXT}"
    assert gw.sql_script(text, BOTH, t=stream()).results()["result"].num_rows == 1
    with pytest.raises(SqlError, match="a function of a script is given") as error:
        gw.sql_script(text, t=stream()).results()
    assert (error.value.line, error.value.position) == (1, 27)


@pytest.mark.parametrize(
    ("functions", "rule"),
    [
        ({"high": gw.max, "prod": lambda: None}, "does not take this"),
        ({"high": gw.max, "prod": lambda column: column}, "returns an aggregate"),
        ({"prod": gw.max}, "given, as gw.sql"),
        ({"prod": 1}, "are a mapping of names"),
        (["prod"], "are a mapping of names"),
    ],
)
def test_what_is_no_function_is_refused(functions: Any, rule: str) -> None:
    with pytest.raises(QueryError, match=rule):
        gw.sql(TEXT, functions, t=stream())
