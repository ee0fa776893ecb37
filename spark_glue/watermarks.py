"""A query's watermarks as Spark's own, and the rows that only carry one."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.planning.plan import Plan
from gpu_windows.query.base import Query
from gpu_windows.query.validation import check_free
from gpu_windows.rules import LONG_MAX
from gpu_windows.spark_glue.guard import FUTURE
from gpu_windows.spark_glue.marks import INPUT
from gpu_windows.spark_glue.names import quoted
from gpu_windows.spark_glue.passed import CARRIED
from gpu_windows.spark_glue.types import to_arrow_schema
from gpu_windows.watermarks import (
    StageWatermarks,
    UnionWatermarks,
    WatermarkStrategy,
    stages_in,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Microseconds in a millisecond, the unit of Spark's watermark.
_MILLISECOND = 1_000
#: Name of the column that Spark watches where it is not the time of rows.
_WATCHED = "__watermark"
#: Name of the column of watermarks that rows carry, in ticks, null where a row carries none.
CARRIED_WATERMARK = "__carried_watermark"


def watched(frame: DataFrame, plan: Plan, *, is_adopted: bool = False) -> DataFrame:
    """Return a streaming DataFrame whose watermarks Spark follows, without markers."""
    time, watermarks = plan.query.time, plan.query.watermarks
    marked, by_us = plan.marker_columns, watermarks.is_own
    return followed(frame, time, watermarks, marked, by_us=by_us, is_adopted=is_adopted)


def followed(
    frame: DataFrame,
    time: str,
    watermarks: WatermarkStrategy,
    marked: Iterable[str] = (),
    *,
    by_us: bool = False,
    is_adopted: bool = False,
) -> DataFrame:
    """Let Spark follow the watermarks of a streaming DataFrame, and drop markers.

    A DataFrame is returned as it is where the watermark is processing time, never moves, is not
    followed by Spark, was in the inputs of a union, or is that of an earlier stage.

    Where a guard keeps it, the column `gpu_windows.spark_glue.guard.FUTURE` says of a row that it
    is too far in the future; Spark takes it for one without a time.

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
    by_us : bool
        Whether tasks follow them, in place of Spark.
    is_adopted : bool
        Whether Spark follows them already: see `gpu_windows.spark_glue.upstream.Upstream.adopts`.
    """
    if is_adopted:
        return frame
    moves = watermarks.moves and not watermarks.in_processing_time
    if not moves or isinstance(watermarks, UnionWatermarks | StageWatermarks):
        return frame
    if watermarks.most_ahead is not None:
        check_untold(to_arrow_schema(frame.schema))
        frame = frame.withColumn(FUTURE, _is_future(F.col(quoted(time)), watermarks.most_ahead))
    if by_us:
        return frame
    delay = f"{-(-watermarks.out_of_orderness // _MILLISECOND)} milliseconds"
    if watermarks.column is None and watermarks.most_ahead is None:
        return frame.withWatermark(time, delay)
    moving = F.col(quoted(time)) if watermarks.column is None else _after(watermarks.column)
    if watermarks.most_ahead is not None:
        is_too_far = F.col(FUTURE) | _is_future(moving, watermarks.most_ahead)
        moving = F.when(~is_too_far, moving)
    rows = frame.withColumn(_WATCHED, moving).withWatermark(_WATCHED, delay)
    if watermarks.column is None:
        return rows
    # A condition on what is watched: any other, Spark would ask before it looks at the watermark.
    return rows.where(_has_data(F.col(_WATCHED), marked))


def with_carried_watermark(frame: DataFrame, watermarks: WatermarkStrategy) -> DataFrame:
    """Return a streaming DataFrame with `CARRIED_WATERMARK`, where rows carry the watermark.

    One that is too far ahead of the clock, for a guard, is null.
    """
    if watermarks.column is None:
        return frame
    check_free(to_arrow_schema(frame.schema), CARRIED_WATERMARK)
    carried = F.col(quoted(str(watermarks.column)))
    ticks = F.unix_micros(carried)
    if watermarks.most_ahead is not None:
        ticks = F.when(~_is_future(carried, watermarks.most_ahead), ticks)
    return frame.withColumn(CARRIED_WATERMARK, ticks)


def told_columns(query: Query) -> tuple[str, ...]:
    """Return what tasks are told of a stream's rows besides the columns of a query."""
    watermarks = query.watermarks
    future = (FUTURE,) if watermarks.is_guarded and query.needs_time else ()
    carried = (CARRIED,) if stages_in(watermarks) else ()
    told = (*future, *carried)
    return (*told, INPUT) if watermarks.is_own and len(watermarks.inputs) > 1 else told


def check_untold(schema: pa.Schema) -> None:
    """Raise `NameClashError` if an input has a column with a name of these."""
    for name in (FUTURE, INPUT, CARRIED):
        check_free(schema, name)


def without_told(schema: pa.Schema) -> pa.Schema:
    """Return the columns of an input without what tasks are told of its rows."""
    return pa.schema([field for field in schema if field.name not in (FUTURE, INPUT, CARRIED)])


def told(watermarks: WatermarkStrategy, together: WatermarkStrategy, first: int) -> list[Column]:
    """Return the same of one of several inputs, as columns.

    Parameters
    ----------
    watermarks : WatermarkStrategy
        Of the input, which is `followed` and may be a union itself.
    together : WatermarkStrategy
        Of all inputs.
    first : int
        The number of the input, or of the first one in it.
    """
    is_union = isinstance(watermarks, UnionWatermarks)
    number = F.col(INPUT) + F.lit(first) if is_union else F.lit(first)
    columns = [number.alias(INPUT)]
    if together.is_guarded:
        is_future = F.col(FUTURE) if watermarks.is_guarded else F.lit(False)
        columns.append(is_future.alias(FUTURE))
    if stages_in(together):
        carried = F.col(CARRIED) if stages_in(watermarks) else F.lit(None).cast("binary")
        columns.append(carried.alias(CARRIED))
    return columns


def _after(carrier: str | Column) -> Column:
    """Return what Spark watches for the watermarks in a column."""
    carried = F.unix_micros(F.col(quoted(str(carrier))))
    return F.timestamp_micros(F.coalesce(F.try_add(carried, F.lit(1)), carried))


def _is_future(time: Column, most_ahead: int) -> Column:
    """Whether a time is more than so many ticks ahead of the micro-batch's."""
    latest = F.unix_micros(F.current_timestamp()) + F.lit(min(most_ahead, LONG_MAX // 2))
    return F.coalesce(F.unix_micros(time) > latest, F.lit(False))


def without_markers(frame: DataFrame, carrier: str | None, marked: Iterable[str]) -> DataFrame:
    """Return a batch DataFrame without the rows that only carry a watermark."""
    return frame if carrier is None else frame.where(_has_data(F.col(quoted(carrier)), marked))


def _has_data(carried: Column, marked: Iterable[str]) -> Column:
    valid = (F.col(quoted(name)).isNotNull() for name in marked)
    return reduce(or_, valid, carried.isNull())
