"""Times as ticks, microseconds, and back: of TIMESTAMP, and of TIMESTAMP_NTZ without a zone.

Also the instants at which clocks show the latter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import DataType, TimestampNTZType

from gpu_windows.spark_glue.columns.names import quote_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Parts of a time without a zone.
_PARTS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
#: Expressions have times and ticks once: Spark puts those of chained queries into each other.
_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
_TICK = "INTERVAL '0 00:00:00.000001' DAY TO SECOND"


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
    if not _has_no_zone(dtype):
        return F.unix_micros(times)
    return F.call_function("div", times - F.expr(_EPOCH), F.expr(_TICK))  # of two intervals


def ticks_in(frame: DataFrame, name: str) -> Column:
    """Return a column of times of a DataFrame as ticks."""
    return ticks_of(F.col(quote_name(name)), frame.schema[name].dataType)


def times_of(ticks: Column, dtype: pa.DataType | DataType) -> Column:
    """Return ticks as times of a type; any but TIMESTAMP_NTZ is TIMESTAMP."""
    if not _has_no_zone(dtype):
        return F.timestamp_micros(ticks)
    return F.expr(_EPOCH) + F.expr(_TICK) * ticks


def time_in_sql(ticks: int, dtype: pa.DataType | DataType) -> str:
    """Return ticks as a constant in SQL of the type of `times_of`."""
    if not _has_no_zone(dtype):
        return f"timestamp_micros({ticks}L)"
    return f"({_EPOCH} + {_TICK} * {ticks}L)"


def instants_in_spark(times: Column, zone: str) -> Column:
    """Return the instants at which clocks of a zone show times; the session's zone has no part.

    See `gpu_windows.column_types.local_times.instants_of`. A cast is in the zone of the session.
    """
    year, month, day, hour, minute, second = (F.extract(F.lit(part), times) for part in _PARTS)
    return F.make_timestamp_ltz(year, month, day, hour, minute, second, F.lit(zone))


def _has_no_zone(dtype: pa.DataType | DataType) -> bool:
    if isinstance(dtype, pa.DataType):
        return bool(pa.types.is_timestamp(dtype) and dtype.tz is None)
    return isinstance(dtype, TimestampNTZType)
