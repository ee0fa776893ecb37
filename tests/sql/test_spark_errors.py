"""Whatever Spark refuses of a statement is an `SqlError` with a place in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import QueryError, SqlError
from gpu_windows.spark_glue.columns.expressions import is_of_spark, spark_errors_as_query_errors
from gpu_windows.sql.api_call import ApiCall
from tests.sql.texts import stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR = "FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR))"
BY = "GROUP BY window_start, window_end"

#: What Spark refuses, with # before its place.
MISTAKES = {
    "a text as a time": f"SELECT v, #YEAR(v) AS x {HOUR}",
    "a condition of rows": f"SELECT v {HOUR} WHERE #YEAR(v) = 1",
    "a condition of aggregates": f"SELECT COUNT(*) AS n {HOUR} {BY} HAVING #YEAR(COUNT(*)) = 1",
    "an argument of an aggregate": f"SELECT SUM(#YEAR(v)) AS n {HOUR} {BY}",
    "an element of a number": f"SELECT v, v[#'k'] AS x {HOUR}",
    "a list's end": f"SELECT v, #CARDINALITY(v) AS x {HOUR}",
    "an item behind others": f"SELECT COUNT(*) AS n, #YEAR(MIN(v)) AS y {HOUR} {BY}",
    "a key": f"SELECT COUNT(*) AS n {HOUR} {BY}, #YEAR(v)",
    "frames": "SELECT SUM(#YEAR(v)) OVER (PARTITION BY v ORDER BY ts) AS s FROM t",
}


def rows() -> pa.Table:
    times = pa.array([0, 1], pa.timestamp("s", "UTC"))
    return pa.table({"v": [1, 2], "s": ["a", "b"], "ts": times})


def test_what_spark_refuses_is_told_with_its_place(spark: SparkSession) -> None:
    of = stream(spark.createDataFrame(rows()))
    told = {}
    for case, text in MISTAKES.items():
        with pytest.raises(SqlError) as caught:
            gw.sql(text.replace("#", ""), t=of)
        told[case] = caught.value
        assert "\n" not in str(caught.value), case
    places = {case: (error.line, error.position) for case, error in told.items()}
    assert places == {case: (1, text.index("#") + 1) for case, text in MISTAKES.items()}


def test_a_name_with_a_backquote_is_no_bare_error(spark: SparkSession) -> None:
    of = stream(spark.createDataFrame(rows().rename_columns(["a`b", "s", "ts"])))
    with pytest.raises(SqlError, match=r"Spark refuses this: .INVALID_ATTRIBUTE_NAME") as caught:
        gw.sql(f"SELECT `a``b` {HOUR}", t=of).result()
    assert caught.value.line == 1


def _kinds() -> list[type[Exception]]:
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import AnalysisException, ParseException, PySparkTypeError

    return [AnalysisException, ParseException, PySparkTypeError, Py4JError, Py4JNetworkError]


@pytest.mark.parametrize("kind", _kinds())
def test_errors_of_spark_in_a_step_are_of_the_query(kind: type[Exception]) -> None:
    class Step:
        def fails(self) -> NoReturn:
            raise kind("what Spark says\n\tat org.apache.spark")

    with pytest.raises(QueryError, match=r"Spark refuses this: what Spark says$"):
        ApiCall(Step(), "step").call("fails")


def test_other_errors_stay_as_they_are() -> None:
    for error in (ValueError("x"), KeyError("x"), ZeroDivisionError()):
        assert not is_of_spark(error)
        with pytest.raises(type(error)), spark_errors_as_query_errors():
            raise error
