"""Apache Flink's windows for PySpark, on CUDA and CPU kernels.

Names are imported when they are first asked for, each from its home, so that ``import gpu_windows``
takes next to nothing, and a worker of Spark's loads what its operator needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpu_windows import checkpoints as checkpoints
    from gpu_windows import errors as errors
    from gpu_windows.aggregates.aggregate import Aggregate, Framed
    from gpu_windows.aggregates.built_in import (
        approx_count_distinct,
        approx_quantile,
        arg_max,
        arg_min,
        bool_and,
        bool_or,
        collect_list,
        count,
        count_distinct,
        dense_rank,
        first,
        lag,
        last,
        lead,
        mean,
        median,
        quantile,
        rank,
        row_number,
        stddev,
        variance,
    )
    from gpu_windows.aggregates.built_in import max_ as max  # noqa: A004
    from gpu_windows.aggregates.built_in import min_ as min  # noqa: A004
    from gpu_windows.aggregates.built_in import sum_ as sum  # noqa: A004
    from gpu_windows.aggregates.user import AggregateFunction, UserAggregate, user_aggregate
    from gpu_windows.checkpoints import CheckpointState, CommitSummary, read_commits, read_state
    from gpu_windows.commits.write_target import WrittenParquet
    from gpu_windows.datastream.broadcast import BroadcastConnectedStream, BroadcastStream
    from gpu_windows.datastream.interval_joined import IntervalJoin, IntervalJoined
    from gpu_windows.datastream.joined import (
        CoGroupedStreams,
        JoinedStreams,
        WindowedCoGroup,
        WindowedJoin,
    )
    from gpu_windows.datastream.keyed import KeyedStream
    from gpu_windows.datastream.match import MatchStream
    from gpu_windows.datastream.over import OverStream
    from gpu_windows.datastream.processed import ConnectedStreams
    from gpu_windows.datastream.read import read_output, read_output_stream
    from gpu_windows.datastream.scan import Scan, scan, scan_stream
    from gpu_windows.datastream.stages import stream_results
    from gpu_windows.datastream.stream import Stream, TimedStream, stream
    from gpu_windows.datastream.version_joined import VersionJoined
    from gpu_windows.datastream.windowed import WindowedStream
    from gpu_windows.datastream.write import write_stream
    from gpu_windows.deltas import Delta
    from gpu_windows.evictors import (
        CountEvictor,
        DeltaEvictor,
        Element,
        Evictor,
        EvictorContext,
        TimeEvictor,
    )
    from gpu_windows.frames import Frame, Range, Rows
    from gpu_windows.functions.broadcast import (
        BroadcastContext,
        KeyedBroadcastProcessFunction,
        ReadOnlyBroadcastState,
        ReadOnlyContext,
        ReadOnlyTimerContext,
    )
    from gpu_windows.functions.built_in import Collect, Reduce
    from gpu_windows.functions.co_group import (
        CoGroupBatch,
        CoGroupFunction,
        VectorCoGroupFunction,
        WindowContext,
    )
    from gpu_windows.functions.join_function import (
        FlatJoinFunction,
        IntervalPairContext,
        ProcessJoinFunction,
        WindowPairContext,
    )
    from gpu_windows.functions.keyed_process import (
        KeyedContext,
        KeyedCoProcessFunction,
        KeyedProcessFunction,
        OpenContext,
        TimerContext,
    )
    from gpu_windows.functions.keyed_state import (
        AggregatingStateDescriptor,
        AppendingState,
        ListState,
        ListStateDescriptor,
        MapState,
        MapStateDescriptor,
        ReducingStateDescriptor,
        StateDescriptor,
        StateTtlConfig,
        ValueState,
        ValueStateDescriptor,
    )
    from gpu_windows.functions.process import Process, ProcessContext, ProcessWindowFunction
    from gpu_windows.functions.vector_process import RowsBatch, TimersBatch, VectorProcessFunction
    from gpu_windows.functions.vector_results import VectorResult
    from gpu_windows.functions.vectorised import Vectorised, VectorWindowFunction, WindowBatch
    from gpu_windows.monitoring.live import watch
    from gpu_windows.options import Options
    from gpu_windows.plots.firings import plot_firings
    from gpu_windows.rich_functions import RuntimeContext
    from gpu_windows.runners.firings import trace_firings
    from gpu_windows.runners.outputs import Outputs
    from gpu_windows.runners.sink import Sink, SinkBatch, SinkQuery, SinkWriter
    from gpu_windows.sinks.kafka import KafkaSink
    from gpu_windows.sinks.parquet import ParquetSink
    from gpu_windows.sinks.tables.sink import DeltaSink, IcebergSink
    from gpu_windows.sinks.upsert import Upsert, upsert
    from gpu_windows.spark_glue.files.kafka_records import drop_repeats
    from gpu_windows.spark_glue.session.settings import configure, session
    from gpu_windows.spark_glue.streams.listener import MetricsListener as MetricsListener
    from gpu_windows.sql.query import SqlQuery, sql
    from gpu_windows.triggers import (
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
        Trigger,
        TriggerContext,
        TriggerResult,
    )
    from gpu_windows.watermarks import WatermarkStrategy
    from gpu_windows.windows import (
        CumulativeEventTimeWindows,
        CumulativeProcessingTimeWindows,
        EventTimeSessionWindows,
        GlobalWindow,
        GlobalWindows,
        MergingWindowAssigner,
        MultiLengthEventTimeWindows,
        ProcessingTimeSessionWindows,
        SlidingEventTimeWindows,
        SlidingProcessingTimeWindows,
        TimeWindow,
        TumblingEventTimeWindows,
        TumblingProcessingTimeWindows,
        WindowAssigner,
    )

__version__ = "0.1.0"

#: The home of every public name. A name of Python's own ends with an underscore there, not here.
_HOMES = {
    "aggregates.aggregate": "Aggregate Framed",
    "aggregates.built_in": (
        "approx_count_distinct approx_quantile arg_max arg_min bool_and bool_or collect_list "
        "count count_distinct dense_rank first lag last lead mean median quantile rank "
        "row_number stddev variance max_ min_ sum_"
    ),
    "aggregates.user": "AggregateFunction UserAggregate user_aggregate",
    "checkpoints": "CheckpointState CommitSummary read_commits read_state",
    "commits.write_target": "WrittenParquet",
    "datastream.broadcast": "BroadcastConnectedStream BroadcastStream",
    "datastream.interval_joined": "IntervalJoin IntervalJoined",
    "datastream.joined": "CoGroupedStreams JoinedStreams WindowedCoGroup WindowedJoin",
    "datastream.keyed": "KeyedStream",
    "datastream.match": "MatchStream",
    "datastream.over": "OverStream",
    "datastream.processed": "ConnectedStreams",
    "datastream.read": "read_output read_output_stream",
    "datastream.scan": "Scan scan scan_stream",
    "datastream.stages": "stream_results",
    "datastream.stream": "Stream TimedStream stream",
    "datastream.version_joined": "VersionJoined",
    "datastream.windowed": "WindowedStream",
    "datastream.write": "write_stream",
    "deltas": "Delta",
    "evictors": "CountEvictor DeltaEvictor Element Evictor EvictorContext TimeEvictor",
    "frames": "Frame Range Rows",
    "functions.broadcast": (
        "BroadcastContext KeyedBroadcastProcessFunction ReadOnlyBroadcastState "
        "ReadOnlyContext ReadOnlyTimerContext"
    ),
    "functions.built_in": "Collect Reduce",
    "functions.co_group": "CoGroupBatch CoGroupFunction VectorCoGroupFunction WindowContext",
    "functions.join_function": (
        "FlatJoinFunction IntervalPairContext ProcessJoinFunction WindowPairContext"
    ),
    "functions.keyed_process": (
        "KeyedContext KeyedCoProcessFunction KeyedProcessFunction OpenContext TimerContext"
    ),
    "functions.keyed_state": (
        "AggregatingStateDescriptor AppendingState ListState ListStateDescriptor MapState "
        "MapStateDescriptor ReducingStateDescriptor StateDescriptor StateTtlConfig ValueState "
        "ValueStateDescriptor"
    ),
    "functions.process": "Process ProcessContext ProcessWindowFunction",
    "functions.vector_process": "RowsBatch TimersBatch VectorProcessFunction",
    "functions.vector_results": "VectorResult",
    "functions.vectorised": "Vectorised VectorWindowFunction WindowBatch",
    "monitoring.live": "watch",
    "options": "Options",
    "plots.firings": "plot_firings",
    "rich_functions": "RuntimeContext",
    "runners.firings": "trace_firings",
    "runners.outputs": "Outputs",
    "runners.sink": "Sink SinkBatch SinkQuery SinkWriter",
    "sinks.kafka": "KafkaSink",
    "sinks.parquet": "ParquetSink",
    "sinks.tables.sink": "DeltaSink IcebergSink",
    "sinks.upsert": "Upsert upsert",
    "spark_glue.files.kafka_records": "drop_repeats",
    "spark_glue.streams.listener": "MetricsListener",
    "spark_glue.session.settings": "configure session",
    "sql.query": "SqlQuery sql",
    "triggers": (
        "ContinuousEventTimeTrigger ContinuousProcessingTimeTrigger CountTrigger DeltaTrigger "
        "EarlyAndLateTrigger EndOfStreamTrigger EventTimeTrigger NeverTrigger "
        "ProcessingTimeoutTrigger ProcessingTimeTrigger PurgingTrigger Trigger TriggerContext "
        "TriggerResult"
    ),
    "watermarks": "WatermarkStrategy",
    "windows": (
        "CumulativeEventTimeWindows CumulativeProcessingTimeWindows EventTimeSessionWindows "
        "GlobalWindow GlobalWindows MergingWindowAssigner MultiLengthEventTimeWindows "
        "ProcessingTimeSessionWindows SlidingEventTimeWindows SlidingProcessingTimeWindows "
        "TimeWindow TumblingEventTimeWindows TumblingProcessingTimeWindows WindowAssigner"
    ),
}

#: Modules that users know by their names.
_MODULES = ("checkpoints", "errors")

#: Of every public name its home, and its name there.
_PLACES = {
    name.rstrip("_"): (home, name) for home, names in _HOMES.items() for name in names.split()
}

# A function has the name of a package, which would take its place here when it is first imported.
import_module("gpu_windows.sql")
del globals()["sql"]

if not TYPE_CHECKING:  # else no name would be a wrong one

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name not in _PLACES:
            where = ": errors are in gpu_windows.errors" if name.endswith("Error") else ""
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{where}")
        home, own_name = _PLACES[name]
        value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), own_name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})


#: All public names but those that need Spark: ``*`` asks for each.
__all__ = [
    "Aggregate", "AggregateFunction", "AggregatingStateDescriptor", "AppendingState",
    "BroadcastConnectedStream", "BroadcastContext", "BroadcastStream", "CheckpointState",
    "CoGroupBatch", "CoGroupFunction", "CoGroupedStreams", "Collect", "CommitSummary",
    "ConnectedStreams", "ContinuousEventTimeTrigger", "ContinuousProcessingTimeTrigger",
    "CountEvictor", "CountTrigger", "CumulativeEventTimeWindows",
    "CumulativeProcessingTimeWindows", "Delta", "DeltaEvictor", "DeltaSink", "DeltaTrigger",
    "EarlyAndLateTrigger", "Element", "EndOfStreamTrigger", "EventTimeSessionWindows",
    "EventTimeTrigger", "Evictor", "EvictorContext", "FlatJoinFunction", "Frame", "Framed",
    "GlobalWindow", "GlobalWindows", "IcebergSink", "IntervalJoin", "IntervalJoined",
    "IntervalPairContext", "JoinedStreams", "KafkaSink", "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction", "KeyedContext", "KeyedProcessFunction", "KeyedStream",
    "ListState", "ListStateDescriptor", "MapState", "MapStateDescriptor", "MatchStream",
    "MergingWindowAssigner", "MultiLengthEventTimeWindows", "NeverTrigger", "OpenContext",
    "Options", "Outputs", "OverStream", "ParquetSink", "Process", "ProcessContext",
    "ProcessJoinFunction", "ProcessWindowFunction", "ProcessingTimeSessionWindows",
    "ProcessingTimeTrigger", "ProcessingTimeoutTrigger", "PurgingTrigger", "Range",
    "ReadOnlyBroadcastState", "ReadOnlyContext", "ReadOnlyTimerContext", "Reduce",
    "ReducingStateDescriptor", "Rows", "RowsBatch", "RuntimeContext", "Scan", "Sink",
    "SinkBatch", "SinkQuery", "SinkWriter", "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows", "SqlQuery", "StateDescriptor", "StateTtlConfig", "Stream",
    "TimeEvictor", "TimeWindow", "TimedStream", "TimerContext", "TimersBatch", "Trigger",
    "TriggerContext", "TriggerResult",
    "TumblingEventTimeWindows", "TumblingProcessingTimeWindows", "Upsert", "UserAggregate",
    "ValueState", "ValueStateDescriptor", "VectorCoGroupFunction", "VectorProcessFunction",
    "VectorResult", "VectorWindowFunction", "Vectorised", "VersionJoined", "WatermarkStrategy",
    "WindowAssigner", "WindowBatch", "WindowContext", "WindowPairContext", "WindowedCoGroup",
    "WindowedJoin", "WindowedStream", "WrittenParquet", "approx_count_distinct", "approx_quantile",
    "arg_max",
    "arg_min", "bool_and", "bool_or", "collect_list", "configure", "count", "count_distinct",
    "dense_rank", "drop_repeats", "first", "lag", "last", "lead", "max", "mean", "median",
    "min", "plot_firings", "quantile", "rank", "read_commits", "read_output",
    "read_output_stream", "read_state", "row_number", "scan", "scan_stream", "session", "sql",
    "stddev", "stream", "stream_results", "sum", "trace_firings", "upsert", "user_aggregate",
    "variance", "watch", "write_stream",
]  # fmt: skip
