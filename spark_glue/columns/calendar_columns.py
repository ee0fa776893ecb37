"""Units of the calendar as columns of Spark, by our own tables of time zones.

The zones that Java knows are no part of it: tables say when days begin, and months are arithmetic
on numbers of days, as a month begins with its first day.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows import rules
from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.spark_glue.columns.rule_columns import Ticks, tables_in_spark
from gpu_windows.vocabulary.windows.calendar import CalendarWindows
from gpu_windows.vocabulary.windows.calendar_units import DAYS_OF_MONTH, ShownDays
from gpu_windows.vocabulary.windows.zones import CYCLE, DAY

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: The unit of a row, and the columns that lead to it: how often the calendar repeated before, the
#: time without these repetitions, the piece of time in which clocks are not changed, what they
#: show, and the day.
UNIT = "__unit"
_CYCLES, _TICK, _PIECE, _CLOCK, _DAY = "__cycles", "__tick", "__piece", "__clock", "__day"
_CYCLE_TICKS = CYCLE * DAY


def epoch() -> Column:
    """Return the day from which dates are counted.

    The functions of Spark that count from it by themselves have no version for the GPU.
    """
    return F.lit(date(1970, 1, 1))


def with_unit(frame: DataFrame, time: str, windows: CalendarWindows) -> DataFrame:
    """Add `UNIT`, the unit of the calendar that holds a time in ticks; null if it is not usable.

    Each step is a projection of its own: Spark puts those into others that refer to them once.
    """
    days = windows.shown_days
    tables = tables_in_spark(frame.sparkSession, days.begins, days.buckets, days.shifts)
    begins, buckets, shifts = tables
    name, tick, cycles = F.col(quote_name(time)), _ticks(_TICK), _cycles(F.col(_TICK), days)
    piece = rules.find_run(tick, begins, buckets, days.bucket_shift, days.bucket_steps)
    number = _ticks(_CLOCK) // DAY + _ticks(_CYCLES) * CYCLE
    steps = (
        {_TICK: F.when(name.between(*windows.usable_ticks), name)},
        {_TICK: (tick - cycles * _CYCLE_TICKS).column, _CYCLES: cycles.column},
        {_PIECE: piece.column},
        {_CLOCK: (tick + shifts[_ticks(_PIECE)]).column},
        {_DAY: F.date_add(epoch(), number.column.cast("int"))},
        {UNIT: _number(F.col(_DAY), windows)},
    )
    for step in steps:
        frame = frame.withColumns(step)
    return frame.drop(_CYCLES, _TICK, _PIECE, _CLOCK, _DAY)


def _ticks(name: str) -> Any:
    return Ticks(F.col(name))


def _cycles(times: Column, days: ShownDays) -> Any:
    """Return how many cycles of the calendar later times are than those of ``days``."""
    first = int(days.begins[0])
    later, earlier = Ticks(times) - days.end, Ticks(times) - first
    counts = F.when(times >= days.end, (later // _CYCLE_TICKS + 1).column)
    counts = counts.when(times < first, (earlier // _CYCLE_TICKS).column)
    return Ticks(counts.otherwise(F.lit(0).cast("long")))


def _number(day: Column, windows: CalendarWindows) -> Column:
    """Return the number of the unit that a day is in."""
    if windows.unit == "day":
        return F.datediff(day, epoch()).cast("long")
    month = F.year(day).cast("long") * 12 + F.month(day) - (1970 * 12 + 1)
    return month if windows.unit == "month" else month * DAYS_OF_MONTH + F.dayofmonth(day) - 1
