"""Times without a zone as instants, in an expression of Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

if TYPE_CHECKING:
    from pyspark.sql import Column

_PARTS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")


def instants_in_spark(times: Column, zone: str) -> Column:
    """Return the instants at which clocks of a zone show times; the session's zone has no part.

    See `gpu_windows.column_types.local_times.instants_of`. A cast is in the zone of the session.
    """
    year, month, day, hour, minute, second = (F.extract(F.lit(part), times) for part in _PARTS)
    return F.make_timestamp_ltz(year, month, day, hour, minute, second, F.lit(zone))
