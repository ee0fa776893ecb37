"""Unites the rows of two DataFrames with the columns of both and `SIDE`, the side of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import TimestampType

from gpu_windows.errors import QueryError
from gpu_windows.functions.two_inputs import SIDE, TIME
from gpu_windows.runners.arrow_rows import schema_of_sides
from gpu_windows.runners.outputs import InputSide
from gpu_windows.runners.row_changes import ProjectRows, RowChange
from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.spark_glue.columns.types import check_name, to_arrow, to_spark
from gpu_windows.spark_glue.contract.watermarks import (
    check_reserved_columns,
    progress_of_input,
    with_progress,
    without_markers,
)
from gpu_windows.spark_glue.dataframes.stage_rows import Change
from gpu_windows.vocabulary.watermarks import WatermarkStrategy, join_watermarks

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def change_sides(
    keys: Sequence[pa.Field], left: tuple[InputSide, DataFrame], right: tuple[InputSide, DataFrame]
) -> list[Change]:
    """Return the change for the rows of each side.

    See `gpu_windows.runners.outputs.Source.tag_sides`.
    """
    if left[1].isStreaming != right[1].isStreaming:
        kinds = ["a stream" if frame.isStreaming else "a batch" for _, frame in (left, right)]
        rule = "the inputs of a join are both streams or both batch DataFrames"
        raise QueryError(rule, value=" with ".join(kinds))
    names = [field.name for field in keys]
    for side, frame in (left, right):
        for name in (*names, *side.columns):
            check_name(name)
        if frame.isStreaming:
            check_reserved_columns((*names, *side.columns))
    watermarks = join_watermarks(left[0].watermarks, right[0].watermarks)
    return [
        _change(keys, left, right, watermarks, is_left=True),
        _change(keys, right, left, watermarks, is_left=False),
    ]


def sides_in_tasks(
    keys: Sequence[pa.Field], left: InputSide, right: InputSide
) -> list[RowChange | str]:
    """Return the change for the rows of each side that tasks read, or why they cannot make it."""
    if left.is_broadcast or right.is_broadcast or left.carrier or right.carrier:
        reason = "rows that are broadcast, or carry watermarks, are read by Spark"
        return [reason, reason]
    schema = schema_of_sides(keys, left, right)
    names = [field.name for field in keys]
    return [_project(schema, names, side, is_left=side is left) for side in (left, right)]


def _project(
    schema: pa.Schema, keys: Sequence[str], side: InputSide, *, is_left: bool
) -> RowChange:
    own = {name: str(column) for name, column in zip(keys, side.keys, strict=True)}
    columns = {**own, TIME: side.time, **side.columns}
    return ProjectRows(schema, columns, {SIDE: pa.scalar(is_left)})


def _change(
    keys: Sequence[pa.Field],
    own: tuple[InputSide, DataFrame],
    other: tuple[InputSide, DataFrame],
    watermarks: WatermarkStrategy,
    *,
    is_left: bool,
) -> Change:
    side, (other_side, other_frame) = own[0], other
    is_stream, own_watermarks, marked = own[1].isStreaming, side.watermarks, side.marker_columns
    time, carrier, columns = side.time, side.carrier, dict(side.columns)
    nothing = [_nothing(other_frame, each).alias(name) for name, each in other_side.columns.items()]
    shared = [
        (key, column, _nothing(other_frame, other_column) if column is None else None)
        for key, column, other_column in zip(keys, side.keys, other_side.keys, strict=True)
    ]
    first = 0 if is_left else len(other_side.watermarks.inputs)
    progress = progress_of_input(own_watermarks, watermarks, first) if is_stream else []

    def change(frame: DataFrame) -> DataFrame:
        if is_stream:
            frame = with_progress(frame, time, own_watermarks, marked)
        else:
            frame = without_markers(frame, carrier, marked)
        values = [_plain(frame, column).alias(name) for name, column in columns.items()]
        return frame.select(
            F.lit(is_left).alias(SIDE),
            *(
                (_cast_to_common_type(frame, str(column), key) if null is None else null).alias(
                    key.name
                )
                for key, column, null in shared
            ),
            F.col(quote_name(time)).alias(TIME),
            *((*values, *nothing) if is_left else (*nothing, *values)),
            *progress,
        )

    return change


def _nothing(frame: DataFrame, name: str | None) -> Column:
    """Return null of the type of a column of the other side."""
    assert name is not None
    return F.lit(None).cast(frame.schema[name].dataType)


def _cast_to_common_type(frame: DataFrame, name: str, field: pa.Field) -> Column:
    """Return a column, cast to the common type of both sides."""
    column, dtype = _plain(frame, name), frame.schema[name].dataType
    return column if to_arrow(dtype) == field.type else column.cast(to_spark(field.type))


def _plain(frame: DataFrame, name: str) -> Column:
    """Return a column without Spark's watermark metadata, for which Spark would drop rows."""
    column = F.col(quote_name(name))
    if isinstance(frame.schema[name].dataType, TimestampType):
        return F.timestamp_micros(F.unix_micros(column))
    return column
