"""Classes for annotations, which users do not build: steps, contexts, states, batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_windows.lazy_names import LazyNames

if TYPE_CHECKING:
    from gpu_windows.aggregates.aggregate import Aggregate, Framed
    from gpu_windows.aggregates.user import UserAggregate
    from gpu_windows.checkpoints import CheckpointState, CommitSummary
    from gpu_windows.commits.write_target import WrittenParquet
    from gpu_windows.datastream.broadcast import BroadcastConnectedStream, BroadcastStream
    from gpu_windows.datastream.connected import ConnectedStreams
    from gpu_windows.datastream.interval_join import IntervalJoin, IntervalJoined
    from gpu_windows.datastream.keyed import KeyedStream
    from gpu_windows.datastream.match import MatchStream
    from gpu_windows.datastream.over import OverStream
    from gpu_windows.datastream.scan import Scan
    from gpu_windows.datastream.stream import Stream
    from gpu_windows.datastream.temporal_join import TemporalJoin
    from gpu_windows.datastream.timed_stream import TimedStream
    from gpu_windows.datastream.window_join import (
        CoGroupedStreams,
        JoinedStreams,
        WindowedCoGroup,
        WindowedJoin,
    )
    from gpu_windows.datastream.windowed import WindowedStream
    from gpu_windows.functions.broadcast import (
        BroadcastContext,
        ReadOnlyBroadcastState,
        ReadOnlyContext,
        ReadOnlyTimerContext,
    )
    from gpu_windows.functions.co_group import CoGroupBatch, WindowContext
    from gpu_windows.functions.join_function import IntervalPairContext, WindowPairContext
    from gpu_windows.functions.keyed_process import KeyedContext, OpenContext, TimerContext
    from gpu_windows.functions.keyed_state import AppendingState, ListState, MapState, ValueState
    from gpu_windows.functions.process import ProcessContext
    from gpu_windows.functions.state_descriptors import StateDescriptor
    from gpu_windows.functions.vector_process import RowsBatch, TimersBatch
    from gpu_windows.functions.vector_window import WindowBatch
    from gpu_windows.runners.outputs import Outputs
    from gpu_windows.runners.sink import SinkBatch, SinkQuery
    from gpu_windows.sinks.upsert import Upsert
    from gpu_windows.sql.query import SqlQuery
    from gpu_windows.sql.scripts.script import SqlScript
    from gpu_windows.vocabulary.evictors import Element, EvictorContext
    from gpu_windows.vocabulary.frames import Frame
    from gpu_windows.vocabulary.options import Options
    from gpu_windows.vocabulary.rich_functions import RuntimeContext
    from gpu_windows.vocabulary.triggers import TriggerContext
    from gpu_windows.vocabulary.windows import GlobalWindow, TimeWindow

_NAMES = LazyNames(
    __name__,
    {
        "aggregates.aggregate": "Aggregate Framed",
        "aggregates.user": "UserAggregate",
        "checkpoints": "CheckpointState CommitSummary",
        "commits.write_target": "WrittenParquet",
        "datastream.broadcast": "BroadcastConnectedStream BroadcastStream",
        "datastream.interval_join": "IntervalJoin IntervalJoined",
        "datastream.window_join": "CoGroupedStreams JoinedStreams WindowedCoGroup WindowedJoin",
        "datastream.keyed": "KeyedStream",
        "datastream.match": "MatchStream",
        "datastream.over": "OverStream",
        "datastream.connected": "ConnectedStreams",
        "datastream.scan": "Scan",
        "datastream.stream": "Stream",
        "datastream.timed_stream": "TimedStream",
        "datastream.temporal_join": "TemporalJoin",
        "datastream.windowed": "WindowedStream",
        "functions.broadcast": (
            "BroadcastContext ReadOnlyBroadcastState ReadOnlyContext ReadOnlyTimerContext"
        ),
        "functions.co_group": "CoGroupBatch WindowContext",
        "functions.join_function": "IntervalPairContext WindowPairContext",
        "functions.keyed_process": "KeyedContext OpenContext TimerContext",
        "functions.keyed_state": "AppendingState ListState MapState ValueState",
        "functions.process": "ProcessContext",
        "functions.state_descriptors": "StateDescriptor",
        "functions.vector_process": "RowsBatch TimersBatch",
        "functions.vector_window": "WindowBatch",
        "runners.outputs": "Outputs",
        "runners.sink": "SinkBatch SinkQuery",
        "sinks.upsert": "Upsert",
        "sql.query": "SqlQuery",
        "sql.scripts.script": "SqlScript",
        "vocabulary.evictors": "Element EvictorContext",
        "vocabulary.frames": "Frame",
        "vocabulary.options": "Options",
        "vocabulary.rich_functions": "RuntimeContext",
        "vocabulary.triggers": "TriggerContext",
        "vocabulary.windows": "GlobalWindow TimeWindow",
    },
)

if not TYPE_CHECKING:  # else no name would be a wrong one
    __getattr__, __dir__ = _NAMES.load, _NAMES.list_names

__all__ = [
    "Aggregate",
    "AppendingState",
    "BroadcastConnectedStream",
    "BroadcastContext",
    "BroadcastStream",
    "CheckpointState",
    "CoGroupBatch",
    "CoGroupedStreams",
    "CommitSummary",
    "ConnectedStreams",
    "Element",
    "EvictorContext",
    "Frame",
    "Framed",
    "GlobalWindow",
    "IntervalJoin",
    "IntervalJoined",
    "IntervalPairContext",
    "JoinedStreams",
    "KeyedContext",
    "KeyedStream",
    "ListState",
    "MapState",
    "MatchStream",
    "OpenContext",
    "Options",
    "Outputs",
    "OverStream",
    "ProcessContext",
    "ReadOnlyBroadcastState",
    "ReadOnlyContext",
    "ReadOnlyTimerContext",
    "RowsBatch",
    "RuntimeContext",
    "Scan",
    "SinkBatch",
    "SinkQuery",
    "SqlQuery",
    "SqlScript",
    "StateDescriptor",
    "Stream",
    "TemporalJoin",
    "TimeWindow",
    "TimedStream",
    "TimerContext",
    "TimersBatch",
    "TriggerContext",
    "Upsert",
    "UserAggregate",
    "ValueState",
    "WindowBatch",
    "WindowContext",
    "WindowPairContext",
    "WindowedCoGroup",
    "WindowedJoin",
    "WindowedStream",
    "WrittenParquet",
]  # fmt: skip
