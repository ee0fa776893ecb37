"""Reasons for which rows of a bounded input are rejected, as a column of Spark.

The rules are those of `gpu_windows.operators.columns.row_status`.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows import rules
from gpu_windows.planning.query import Query
from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.spark_glue.columns.ticks import ticks_of
from gpu_windows.vocabulary.windows.base import DurationCheck

if TYPE_CHECKING:
    from pyspark.sql import Column

#: Ticks in the whole parts of an INTERVAL DAY TO SECOND; its seconds have a fraction.
_TICKS = {"DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000}


def reason_of_row(query: Query) -> Column:
    """Return the reason why a row is rejected; null where it is accepted."""
    reason, ticks = F.lit(None).cast("string"), F.lit(0).cast("long")
    if query.needs_time:
        ticks = ticks_of(F.col(quote_name(query.time)), query.time_type)
        reason = F.when(ticks.isNull(), F.lit(rules.REASONS[rules.NULL]))
        outside = ~ticks.between(*query.usable_ticks)
        reason = reason.when(outside, F.lit(rules.REASONS[rules.OUT_OF_RANGE]))
    broken = (
        F.when(_is_broken(query, check, ticks), F.lit(rules.REASONS[check.status]))
        for check in query.row_checks
    )
    return reduce(lambda first, later: F.coalesce(first, later), broken, reason)


def _is_broken(query: Query, check: DurationCheck, ticks: Column) -> Column:
    durations = _duration(query, check.column)
    is_short = durations.isNull() | (durations < 1)
    if not check.of_event_time:  # a bounded input has no processing time
        return is_short
    latest = F.lit(check.last) - F.greatest(durations, F.lit(1).cast("long"))  # never beyond int64
    return is_short | (ticks > latest)


def _duration(query: Query, name: str) -> Column:
    """Return a column of durations in ticks."""
    if not pa.types.is_duration(query.schema.field(name).type):
        return F.col(quote_name(name)).cast("long")
    parts = [
        f"extract({part} FROM {quote_name(name)}) * {ticks}L" for part, ticks in _TICKS.items()
    ]
    seconds = f"cast(extract(SECOND FROM {quote_name(name)}) * 1000000 AS BIGINT)"
    return F.expr(" + ".join([*parts, seconds]))
