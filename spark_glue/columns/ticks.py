"""Times as ticks, microseconds, and back: of TIMESTAMP, and of TIMESTAMP_NTZ without a zone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import DataType, TimestampNTZType

from gpu_windows.spark_glue.columns.local_times import instants_in_spark
from gpu_windows.spark_glue.columns.names import quote_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
_DAY, _SECOND = 86_400_000_000, 1_000_000


def ticks_of(times: Column, dtype: pa.DataType | DataType) -> Column:
    """Return times as BIGINT; the zone of the session has no part in those without a zone.

    Parameters
    ----------
    times : pyspark.sql.Column
        TIMESTAMP, as microseconds since 1970 in UTC; or TIMESTAMP_NTZ, as if a clock of UTC had
        shown them.
    dtype : pyarrow.DataType or pyspark.sql.types.DataType
        Their type.
    """
    return F.unix_micros(instants_in_spark(times, "UTC") if _has_no_zone(dtype) else times)


def ticks_in(frame: DataFrame, name: str) -> Column:
    """Return a column of times of a DataFrame as ticks."""
    return ticks_of(F.col(quote_name(name)), frame.schema[name].dataType)


def times_of(ticks: Column, dtype: pa.DataType | DataType) -> Column:
    """Return ticks as times of a type; any but TIMESTAMP_NTZ is TIMESTAMP."""
    if not _has_no_zone(dtype):
        return F.timestamp_micros(ticks)
    of_day, zero = F.pmod(ticks, F.lit(_DAY)), F.lit(0)
    days = F.call_function("div", ticks - of_day, F.lit(_DAY)).cast("int")  # of whole numbers
    seconds = (of_day.cast("decimal(18,0)") / F.lit(_SECOND)).cast("decimal(18,6)")
    since = F.make_dt_interval(days, zero, zero, seconds)
    return F.expr(_EPOCH) + since


def time_in_sql(ticks: int, dtype: pa.DataType | DataType) -> str:
    """Return ticks as a constant in SQL of the type of `times_of`."""
    if not _has_no_zone(dtype):
        return f"timestamp_micros({ticks}L)"
    days, of_day = divmod(ticks, _DAY)
    seconds, micros = divmod(of_day, _SECOND)
    return f"({_EPOCH} + make_dt_interval({days}, 0, 0, {seconds}.{micros:06d}BD))"


def _has_no_zone(dtype: pa.DataType | DataType) -> bool:
    if isinstance(dtype, pa.DataType):
        return bool(pa.types.is_timestamp(dtype) and dtype.tz is None)
    return isinstance(dtype, TimestampNTZType)
