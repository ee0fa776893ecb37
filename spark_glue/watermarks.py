"""A query's watermarks as Spark's own, and the rows that only carry one."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.planning.plan import Plan
from gpu_windows.spark_glue.partials import quoted
from gpu_windows.watermarks import UnionWatermarks, WatermarkStrategy

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Microseconds in a millisecond, the unit of Spark's watermark.
_MILLISECOND = 1_000
#: Name of the column that Spark watches where rows carry watermarks.
_WATCHED = "__watermark"


def watched(frame: DataFrame, plan: Plan) -> DataFrame:
    """Return a streaming DataFrame whose watermarks Spark follows, without markers."""
    return followed(frame, plan.query.time, plan.query.watermarks, plan.marker_columns)


def followed(
    frame: DataFrame, time: str, watermarks: WatermarkStrategy, marked: Iterable[str] = ()
) -> DataFrame:
    """Let Spark follow the watermarks of a streaming DataFrame, and drop markers.

    A DataFrame is returned as it is where the watermark is processing time, never moves, or was
    followed in the inputs of a union.

    Spark's watermark ``m`` (milliseconds) says that all before ``m`` is there, a carried one ``w``
    that all up to ``w`` is. So Spark watches ``w + 1 us``, which it rounds down: ``m ms - 1 us`` is
    not after ``w``.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        A streaming one, with the time column.
    time : str
        The event time column.
    watermarks : WatermarkStrategy
    marked : iterable of str
        Columns that are all null in a row that only carries a watermark.
    """
    moves = watermarks.moves and not watermarks.in_processing_time
    if not moves or isinstance(watermarks, UnionWatermarks):
        return frame
    if watermarks.column is None:
        delay = -(-watermarks.out_of_orderness // _MILLISECOND)
        return frame.withWatermark(time, f"{delay} milliseconds")
    ticks = F.unix_micros(F.col(quoted(str(watermarks.column))))
    after = F.timestamp_micros(F.coalesce(F.try_add(ticks, F.lit(1)), ticks))
    rows = frame.withColumn(_WATCHED, after).withWatermark(_WATCHED, "0 milliseconds")
    # A condition on what is watched: any other, Spark would ask before it looks at the watermark.
    return rows.where(_has_data(F.col(_WATCHED), marked))


def without_markers(frame: DataFrame, carrier: str | None, marked: Iterable[str]) -> DataFrame:
    """Return a batch DataFrame without the rows that only carry a watermark."""
    return frame if carrier is None else frame.where(_has_data(F.col(quoted(carrier)), marked))


def _has_data(carried: Column, marked: Iterable[str]) -> Column:
    valid = (F.col(quoted(name)).isNotNull() for name in marked)
    return reduce(or_, valid, carried.isNull())
