"""The first rows of windows on Spark batch are those that its own row_number finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

import gpu_windows as gw
from tests.query.queries import rows_of
from tests.spark_glue.streams import batches, windowed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_it_is_what_row_number_gives(spark: SparkSession) -> None:
    frame = spark.createDataFrame(pa.concat_tables(batches())).where("ts is not null")
    made = windowed(frame, gw.SlidingEventTimeWindows.of("1 minute", "20 seconds"))
    expression = (F.col("v") % 5).alias("rest")
    found = made.top(3, [expression, "seq"], descending=[True, False], columns=["seq", expression])
    frame.createOrReplaceTempView("rows_in_windows")
    wanted = spark.sql(
        "SELECT k, start, end, seq, rest, number FROM (SELECT *, row_number() OVER "
        "(PARTITION BY k, start ORDER BY rest DESC, seq) AS number FROM (SELECT k, seq, v % 5 AS "
        "rest, explode(array(window(ts, '1 minute', '20 seconds'))) AS w, w.start, w.end "
        "FROM rows_in_windows)) WHERE number <= 3"
    )
    assert found.columns == ["k", "window_start", "window_end", "seq", "rest", "row_number"]
    assert rows_of(found.toArrow()) == rows_of(wanted.toArrow())
