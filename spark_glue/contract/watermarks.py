"""Internal columns of streams from which tasks compute watermarks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.planning.query import Query
from gpu_windows.planning.validation import check_free
from gpu_windows.rules import LONG_MAX
from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.spark_glue.columns.ticks import ticks_in
from gpu_windows.spark_glue.contract.future_rows import FUTURE
from gpu_windows.vocabulary.watermarks import UnionWatermarks, WatermarkStrategy

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Name of the column with the number of a row's input, from 0, where there are several inputs.
INPUT = "__input"
#: Names of the column of watermarks that rows carry, in ticks, null where a row carries none; and
#: of the column that marks rows which carry nothing else.
CARRIED_WATERMARK, IS_MARKER = "__carried_watermark", "__is_marker"
_RESERVED = (FUTURE, INPUT, CARRIED_WATERMARK, IS_MARKER)


def with_progress(
    frame: DataFrame, time: str, watermarks: WatermarkStrategy, marked: Iterable[str] = ()
) -> DataFrame:
    """Return a streaming DataFrame with the internal columns for its watermark.

    `gpu_windows.spark_glue.contract.future_rows.FUTURE` where there is a guard; `CARRIED_WATERMARK`
    and `IS_MARKER` where rows carry the watermark, which is null if it is too far ahead for a
    guard.
    A union is returned as it is: its inputs have the columns.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        A streaming one, with the time column.
    time : str
        The event time column.
    watermarks : WatermarkStrategy
    marked : iterable of str
        Columns that are all null in a row that only carries a watermark.

    Raises
    ------
    NameClashError
        If the user has a column of such a name.
    """
    moves = watermarks.moves and not watermarks.in_processing_time
    if not moves or isinstance(watermarks, UnionWatermarks):
        return frame
    if watermarks.column is not None or watermarks.max_ahead is not None:
        check_reserved_columns(frame.columns)
    columns: dict[str, Column] = {}
    ahead = watermarks.max_ahead
    if ahead is not None:
        columns[FUTURE] = _is_future(F.col(quote_name(time)), ahead)
    if watermarks.column is not None:
        carried = F.col(quote_name(str(watermarks.column)))
        ticks = ticks_in(frame, str(watermarks.column))
        columns[CARRIED_WATERMARK] = (
            ticks if ahead is None else F.when(~_is_future(carried, ahead), ticks)
        )
        columns[IS_MARKER] = _is_marker(carried, marked)
    return frame.withColumns(columns) if columns else frame


def progress_columns(query: Query) -> tuple[str, ...]:
    """Return the names of the internal columns that a query's rows have before the shuffle."""
    watermarks = query.watermarks
    future = (FUTURE,) if watermarks.is_guarded and query.needs_time else ()
    several = (INPUT,) if len(watermarks.inputs) > 1 else ()
    return (*future, *several, *_carried_columns(watermarks))


def progress_of_input(
    watermarks: WatermarkStrategy, combined: WatermarkStrategy, first: int
) -> list[Column]:
    """Return the internal columns of one of several inputs.

    Parameters
    ----------
    watermarks : WatermarkStrategy
        Of the input, which has gone through `with_progress` and may be a union itself.
    combined : WatermarkStrategy
        Of all inputs.
    first : int
        The number of the input, or of the first one in it.
    """
    is_union = isinstance(watermarks, UnionWatermarks)
    number = F.col(INPUT) + F.lit(first) if is_union else F.lit(first)
    columns = [number.alias(INPUT)]
    if combined.is_guarded:
        is_future = F.col(FUTURE) if watermarks.is_guarded else F.lit(False)
        columns.append(is_future.alias(FUTURE))
    own = _carried_columns(watermarks)
    nothing = {CARRIED_WATERMARK: F.lit(None).cast("long"), IS_MARKER: F.lit(False)}
    carried = {n: F.col(n) if n in own else nothing[n] for n in _carried_columns(combined)}
    return [*columns, *(column.alias(name) for name, column in carried.items())]


def _carried_columns(watermarks: WatermarkStrategy) -> tuple[str, ...]:
    carries = any(each.column is not None for each in watermarks.inputs)
    return (CARRIED_WATERMARK, IS_MARKER) if carries else ()


def check_reserved_columns(names: Iterable[str]) -> None:
    """Raise `NameClashError` if an input has a column with the name of an internal one."""
    columns = pa.schema([(name, pa.null()) for name in names])
    for name in _RESERVED:
        check_free(columns, name)


def without_progress(schema: pa.Schema) -> pa.Schema:
    """Return a schema without the internal columns for watermarks."""
    return pa.schema([field for field in schema if field.name not in _RESERVED])


def _is_future(time: Column, max_ahead: int) -> Column:
    """Whether a time is more than ``max_ahead`` ticks after the time of the micro-batch."""
    latest = F.unix_micros(F.current_timestamp()) + F.lit(min(max_ahead, LONG_MAX // 2))
    return F.coalesce(F.unix_micros(time) > latest, F.lit(False))


def without_markers(frame: DataFrame, carrier: str | None, marked: Iterable[str]) -> DataFrame:
    """Return a batch DataFrame without the rows that only carry a watermark."""
    return (
        frame if carrier is None else frame.where(~_is_marker(F.col(quote_name(carrier)), marked))
    )


def _is_marker(carried: Column, marked: Iterable[str]) -> Column:
    """Whether a row carries a watermark, and nothing else."""
    nulls = (F.col(quote_name(name)).isNull() for name in marked)
    return reduce(and_, nulls, carried.isNotNull())
