"""Two DataFrames as one, a column says which row is whose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import TimestampType

from gpu_windows.errors import QueryError
from gpu_windows.functions.two_inputs import SIDE, TIME
from gpu_windows.runners.outputs import Side
from gpu_windows.spark_glue.chain import check_chain
from gpu_windows.spark_glue.names import quoted
from gpu_windows.spark_glue.types import check_name
from gpu_windows.spark_glue.upstream import Adoption
from gpu_windows.spark_glue.watermarks import check_untold, followed, told, without_markers
from gpu_windows.watermarks import WatermarkStrategy, joined_watermarks

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def tagged_sides(
    keys: Sequence[str], left: tuple[Side, DataFrame], right: tuple[Side, DataFrame]
) -> tuple[DataFrame, Adoption]:
    """Return the rows of both, and what is behind them.

    See `gpu_windows.runners.outputs.Source.tagged`.
    """
    if left[1].isStreaming != right[1].isStreaming:
        kinds = ["a stream" if frame.isStreaming else "a batch" for _, frame in (left, right)]
        rule = "both inputs of a join are streams, or none is"
        raise QueryError(rule, value=" with ".join(kinds))
    for side, frame in (left, right):
        if frame.isStreaming:
            check_chain(frame)
        for name in (*keys, *side.columns):
            check_name(name)
        check_untold(pa.schema([(name, pa.null()) for name in (*keys, *side.columns)]))
    watermarks = joined_watermarks(left[0].watermarks, right[0].watermarks)
    adopted = [_adopt(side, watermarks) for side, _ in (left, right)]
    ours = _projected(keys, left, right, watermarks, adopted[0], is_left=True)
    theirs = _projected(keys, right, left, watermarks, adopted[1], is_left=False)
    return ours.union(theirs), Adoption.concat(adopted)


def _adopt(side: Side, watermarks: WatermarkStrategy) -> Adoption:
    source: Any = side.source
    if not source.frame.isStreaming:
        return Adoption()
    adopted: Adoption = source.adopt(side.time, side.watermarks, by_us=watermarks.is_own)
    return adopted


def _projected(
    keys: Sequence[str],
    own: tuple[Side, DataFrame],
    other: tuple[Side, DataFrame],
    watermarks: WatermarkStrategy,
    adopted: Adoption,
    *,
    is_left: bool,
) -> DataFrame:
    side, frame = own
    if frame.isStreaming:
        frame = followed(
            frame,
            side.time,
            side.watermarks,
            side.marker_columns,
            by_us=watermarks.is_own,
            is_adopted=adopted.has_watermark,
        )
    else:
        frame = without_markers(frame, side.carrier, side.marker_columns)
    columns = [_plain(frame, column).alias(name) for name, column in side.columns.items()]
    nothing = [_nothing(other[1], column).alias(name) for name, column in other[0].columns.items()]
    shared = zip(keys, side.keys, other[0].keys, strict=True)
    first = 0 if is_left else len(other[0].watermarks.inputs)
    return frame.select(
        F.lit(is_left).alias(SIDE),
        *(
            (_nothing(other[1], its) if column is None else _plain(frame, column)).alias(name)
            for name, column, its in shared
        ),
        F.col(quoted(side.time)).alias(TIME),
        *((*columns, *nothing) if is_left else (*nothing, *columns)),
        *(told(side.watermarks, watermarks, first) if frame.isStreaming else ()),
    )


def _nothing(frame: DataFrame, name: str | None) -> Column:
    """Return null, of the type that a column has; one of the two sides has it."""
    assert name is not None
    return F.lit(None).cast(frame.schema[name].dataType)


def _plain(frame: DataFrame, name: str) -> Column:
    """Return a column without what Spark notes about its watermark, for which it drops rows."""
    column = F.col(quoted(name))
    if isinstance(frame.schema[name].dataType, TimestampType):
        return F.timestamp_micros(F.unix_micros(column))
    return column
