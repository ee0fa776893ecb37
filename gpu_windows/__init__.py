"""Apache Flink's windows for PySpark, on CUDA and CPU kernels.

Here are verbs, windows, triggers, aggregates and sinks; `gpu_windows.functions` has the classes
that your functions extend, `gpu_windows.typing` those for annotations, `gpu_windows.testing` what
tests of queries use. Examples in docstrings take ``import gpu_windows as gw`` and
``import pyarrow as pa`` as given.

Names are imported from their modules at first access, so that ``import gpu_windows`` is fast, and
a Spark worker loads only what its operator needs.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpu_windows.lazy_names import LazyNames

if TYPE_CHECKING:
    from gpu_windows import checkpoints as checkpoints
    from gpu_windows import errors as errors
    from gpu_windows import functions as functions
    from gpu_windows import testing as testing
    from gpu_windows import typing as typing
    from gpu_windows.aggregates.built_in import (
        arg_max,
        arg_min,
        bool_and,
        bool_or,
        collect_list,
        count,
        count_distinct,
        first,
        last,
        mean,
        median,
        quantile,
        stddev,
        variance,
    )
    from gpu_windows.aggregates.built_in import max_ as max  # noqa: A004 - as SQL calls it
    from gpu_windows.aggregates.built_in import min_ as min  # noqa: A004 - as SQL calls it
    from gpu_windows.aggregates.built_in import sum_ as sum  # noqa: A004 - as SQL calls it
    from gpu_windows.aggregates.over import dense_rank, lag, lead, rank, row_number
    from gpu_windows.aggregates.sketches import approx_count_distinct, approx_quantile
    from gpu_windows.aggregates.user import user_aggregate
    from gpu_windows.checkpoints import read_commits, read_state
    from gpu_windows.datastream.read import read_output, read_output_stream
    from gpu_windows.datastream.scan import scan, scan_stream
    from gpu_windows.datastream.stages import stream_results
    from gpu_windows.datastream.stream import stream
    from gpu_windows.datastream.write import write_stream
    from gpu_windows.monitoring.live import watch
    from gpu_windows.plots.firings import plot_firings
    from gpu_windows.runners.firings import trace_firings
    from gpu_windows.runners.sink import Sink, SinkWriter
    from gpu_windows.sinks.kafka import KafkaSink
    from gpu_windows.sinks.parquet import ParquetSink
    from gpu_windows.sinks.postgres.sink import PostgresSink
    from gpu_windows.sinks.tables.sink import DeltaSink, IcebergSink
    from gpu_windows.sinks.upsert import upsert
    from gpu_windows.spark_glue.files.kafka_records import drop_repeats
    from gpu_windows.spark_glue.session.settings import configure, session
    from gpu_windows.spark_glue.streams.listener import MetricsListener as MetricsListener
    from gpu_windows.sql.query import sql
    from gpu_windows.sql.scripts.script import sql_script
    from gpu_windows.vocabulary.deltas import Delta
    from gpu_windows.vocabulary.evictors import CountEvictor, DeltaEvictor, TimeEvictor
    from gpu_windows.vocabulary.frames import Range, Rows
    from gpu_windows.vocabulary.triggers import (
        ContinuousEventTimeTrigger,
        ContinuousProcessingTimeTrigger,
        CountTrigger,
        DeltaTrigger,
        EarlyAndLateTrigger,
        EndOfStreamTrigger,
        EventTimeTrigger,
        NeverTrigger,
        ProcessingTimeoutTrigger,
        ProcessingTimeTrigger,
        PurgingTrigger,
    )
    from gpu_windows.vocabulary.watermarks import WatermarkStrategy
    from gpu_windows.vocabulary.windows import (
        CalendarWindows,
        CumulativeEventTimeWindows,
        CumulativeProcessingTimeWindows,
        EventTimeSessionWindows,
        GlobalWindows,
        MultiLengthEventTimeWindows,
        ProcessingTimeSessionWindows,
        SlidingEventTimeWindows,
        SlidingProcessingTimeWindows,
        TumblingEventTimeWindows,
        TumblingProcessingTimeWindows,
    )

__version__ = "0.1.0"

_NAMES = LazyNames(
    __name__,
    {
        "aggregates.built_in": (
            "arg_max arg_min bool_and bool_or collect_list count count_distinct first last mean "
            "median quantile stddev variance max_ min_ sum_"
        ),
        "aggregates.over": "dense_rank lag lead rank row_number",
        "aggregates.sketches": "approx_count_distinct approx_quantile",
        "aggregates.user": "user_aggregate",
        "checkpoints": "read_commits read_state",
        "datastream.read": "read_output read_output_stream",
        "datastream.scan": "scan scan_stream",
        "datastream.stages": "stream_results",
        "datastream.stream": "stream",
        "datastream.write": "write_stream",
        "monitoring.live": "watch",
        "plots.firings": "plot_firings",
        "runners.firings": "trace_firings",
        "runners.sink": "Sink SinkWriter",
        "sinks.kafka": "KafkaSink",
        "sinks.parquet": "ParquetSink",
        "sinks.postgres.sink": "PostgresSink",
        "sinks.tables.sink": "DeltaSink IcebergSink",
        "sinks.upsert": "upsert",
        "spark_glue.files.kafka_records": "drop_repeats",
        "spark_glue.session.settings": "configure session",
        "spark_glue.streams.listener": "MetricsListener",
        "sql.query": "sql",
        "sql.scripts.script": "sql_script",
        "vocabulary.deltas": "Delta",
        "vocabulary.evictors": "CountEvictor DeltaEvictor TimeEvictor",
        "vocabulary.frames": "Range Rows",
        "vocabulary.triggers": (
            "ContinuousEventTimeTrigger ContinuousProcessingTimeTrigger CountTrigger "
            "DeltaTrigger EarlyAndLateTrigger EndOfStreamTrigger EventTimeTrigger NeverTrigger "
            "ProcessingTimeoutTrigger ProcessingTimeTrigger PurgingTrigger"
        ),
        "vocabulary.watermarks": "WatermarkStrategy",
        "vocabulary.windows": (
            "CalendarWindows CumulativeEventTimeWindows CumulativeProcessingTimeWindows "
            "EventTimeSessionWindows GlobalWindows MultiLengthEventTimeWindows "
            "ProcessingTimeSessionWindows SlidingEventTimeWindows SlidingProcessingTimeWindows "
            "TumblingEventTimeWindows TumblingProcessingTimeWindows"
        ),
    },
)

#: Modules that users know by their names.
_MODULES = ("checkpoints", "errors", "functions", "testing", "typing")

#: Names of Spark, pandas or SQL to those of this package.
_HABITS = {
    "approxCountDistinct": "approx_count_distinct",
    "approx_percentile": "approx_quantile",
    "array_agg": "collect_list",
    "avg": "mean",
    "average": "mean",
    "bool_any": "bool_or",
    "countDistinct": "count_distinct",
    "every": "bool_and",
    "max_by": "arg_max",
    "min_by": "arg_min",
    "percentile": "quantile",
    "some": "bool_or",
    "std": "stddev",
    "stddev_samp": "stddev",
    "var": "variance",
    "var_samp": "variance",
    "window": "TumblingEventTimeWindows",
    "Tumble": "TumblingEventTimeWindows",
    "TumblingWindows": "TumblingEventTimeWindows",
    "Slide": "SlidingEventTimeWindows",
    "SlidingWindows": "SlidingEventTimeWindows",
    "Session": "EventTimeSessionWindows",
    "SessionWindows": "EventTimeSessionWindows",
    "CumulativeWindows": "CumulativeEventTimeWindows",
    "session_window": "EventTimeSessionWindows",
}

# A function has the name of a package, which would take its place here when it is first imported.
import_module("gpu_windows.sql")
del globals()["sql"]


def _hint(name: str) -> str:
    """Return a hint for a missing name: what to write instead, if that is known."""
    if name.endswith("Error"):
        return ": errors are in gpu_windows.errors"
    for module in ("functions", "typing"):
        if name in import_module(f"{__name__}.{module}").__all__:
            return f": it is gpu_windows.{module}.{name}"
    near = [_HABITS[name]] if name in _HABITS else get_close_matches(name, __all__, 1, 0.8)
    return f": did you mean {near[0]}" if near else ""


if not TYPE_CHECKING:  # else no name would be a wrong one

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        hint = "" if name in _NAMES.homes or name.startswith("_") else _hint(name)
        try:
            return _NAMES.load(name, hint)
        except ModuleNotFoundError as error:
            import_module(f"{__name__}.errors").require_extra("pyspark", "spark", name)
            raise error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})


#: All public names other than those that need Spark: ``*`` imports each.
__all__ = [
    "CalendarWindows", "ContinuousEventTimeTrigger", "ContinuousProcessingTimeTrigger",
    "CountEvictor", "CountTrigger", "CumulativeEventTimeWindows", "CumulativeProcessingTimeWindows",
    "Delta", "DeltaEvictor", "DeltaSink", "DeltaTrigger", "EarlyAndLateTrigger",
    "EndOfStreamTrigger", "EventTimeSessionWindows", "EventTimeTrigger", "GlobalWindows",
    "IcebergSink", "KafkaSink", "MultiLengthEventTimeWindows", "NeverTrigger", "ParquetSink",
    "PostgresSink", "ProcessingTimeSessionWindows", "ProcessingTimeTrigger",
    "ProcessingTimeoutTrigger", "PurgingTrigger", "Range", "Rows", "Sink", "SinkWriter",
    "SlidingEventTimeWindows", "SlidingProcessingTimeWindows", "TimeEvictor",
    "TumblingEventTimeWindows", "TumblingProcessingTimeWindows", "WatermarkStrategy",
    "approx_count_distinct", "approx_quantile", "arg_max", "arg_min", "bool_and", "bool_or",
    "collect_list", "configure", "count", "count_distinct", "dense_rank", "drop_repeats", "first",
    "lag", "last", "lead", "max", "mean", "median", "min", "plot_firings", "quantile", "rank",
    "read_commits", "read_output", "read_output_stream", "read_state", "row_number", "scan",
    "scan_stream", "session", "sql", "sql_script", "stddev", "stream", "stream_results", "sum",
    "trace_firings", "upsert", "user_aggregate", "variance", "watch", "write_stream",
]  # fmt: skip
