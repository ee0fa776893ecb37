"""Classes for annotations, which users do not build: steps, contexts, states, batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_windows.lazy_names import LazyNames

if TYPE_CHECKING:
    from gpu_windows.aggregates.aggregate import Aggregate as Aggregate
    from gpu_windows.aggregates.aggregate import Framed as Framed
    from gpu_windows.aggregates.user import UserAggregate as UserAggregate
    from gpu_windows.checkpoints import CheckpointState as CheckpointState
    from gpu_windows.checkpoints import CommitSummary as CommitSummary
    from gpu_windows.commits.write_target import WrittenParquet as WrittenParquet
    from gpu_windows.datastream.connected import (
        BroadcastConnectedStream as BroadcastConnectedStream,
    )
    from gpu_windows.datastream.connected import BroadcastStream as BroadcastStream
    from gpu_windows.datastream.connected import ConnectedStreams as ConnectedStreams
    from gpu_windows.datastream.keyed import KeyedStream as KeyedStream
    from gpu_windows.datastream.match import MatchStream as MatchStream
    from gpu_windows.datastream.over import OverStream as OverStream
    from gpu_windows.datastream.scan import Scan as Scan
    from gpu_windows.datastream.stream import Stream as Stream
    from gpu_windows.datastream.time_joins import IntervalJoin as IntervalJoin
    from gpu_windows.datastream.time_joins import IntervalJoined as IntervalJoined
    from gpu_windows.datastream.time_joins import TemporalJoin as TemporalJoin
    from gpu_windows.datastream.timed_stream import TimedStream as TimedStream
    from gpu_windows.datastream.window_join import CoGroupedStreams as CoGroupedStreams
    from gpu_windows.datastream.window_join import JoinedStreams as JoinedStreams
    from gpu_windows.datastream.window_join import WindowedCoGroup as WindowedCoGroup
    from gpu_windows.datastream.window_join import WindowedJoin as WindowedJoin
    from gpu_windows.datastream.windowed import WindowedStream as WindowedStream
    from gpu_windows.functions.broadcast import BroadcastContext as BroadcastContext
    from gpu_windows.functions.broadcast import ReadOnlyContext as ReadOnlyContext
    from gpu_windows.functions.broadcast import ReadOnlyTimerContext as ReadOnlyTimerContext
    from gpu_windows.functions.co_group import CoGroupBatch as CoGroupBatch
    from gpu_windows.functions.co_group import WindowContext as WindowContext
    from gpu_windows.functions.join_function import IntervalPairContext as IntervalPairContext
    from gpu_windows.functions.join_function import WindowPairContext as WindowPairContext
    from gpu_windows.functions.keyed_process import KeyedContext as KeyedContext
    from gpu_windows.functions.keyed_process import OpenContext as OpenContext
    from gpu_windows.functions.keyed_process import TimerContext as TimerContext
    from gpu_windows.functions.keyed_state import AppendingState as AppendingState
    from gpu_windows.functions.keyed_state import ListState as ListState
    from gpu_windows.functions.keyed_state import MapState as MapState
    from gpu_windows.functions.keyed_state import ReadOnlyBroadcastState as ReadOnlyBroadcastState
    from gpu_windows.functions.keyed_state import ValueState as ValueState
    from gpu_windows.functions.process import ProcessContext as ProcessContext
    from gpu_windows.functions.state_descriptors import StateDescriptor as StateDescriptor
    from gpu_windows.functions.vector_process import RowsBatch as RowsBatch
    from gpu_windows.functions.vector_process import TimersBatch as TimersBatch
    from gpu_windows.functions.vector_window import WindowBatch as WindowBatch
    from gpu_windows.runners.outputs import Outputs as Outputs
    from gpu_windows.runners.sink import SinkBatch as SinkBatch
    from gpu_windows.runners.sink import SinkQuery as SinkQuery
    from gpu_windows.sinks.upsert import Upsert as Upsert
    from gpu_windows.sql.query import SqlQuery as SqlQuery
    from gpu_windows.sql.scripts.script import SqlScript as SqlScript
    from gpu_windows.vocabulary.evictors import Element as Element
    from gpu_windows.vocabulary.evictors import EvictorContext as EvictorContext
    from gpu_windows.vocabulary.frames import Frame as Frame
    from gpu_windows.vocabulary.options import Options as Options
    from gpu_windows.vocabulary.rich_functions import RuntimeContext as RuntimeContext
    from gpu_windows.vocabulary.triggers import TriggerContext as TriggerContext
    from gpu_windows.vocabulary.windows import GlobalWindow as GlobalWindow
    from gpu_windows.vocabulary.windows import TimeWindow as TimeWindow

_NAMES = LazyNames(
    __name__,
    {
        "aggregates.aggregate": "Aggregate Framed",
        "aggregates.user": "UserAggregate",
        "checkpoints": "CheckpointState CommitSummary",
        "commits.write_target": "WrittenParquet",
        "datastream.window_join": "CoGroupedStreams JoinedStreams WindowedCoGroup WindowedJoin",
        "datastream.keyed": "KeyedStream",
        "datastream.match": "MatchStream",
        "datastream.over": "OverStream",
        "datastream.connected": "BroadcastConnectedStream BroadcastStream ConnectedStreams",
        "datastream.scan": "Scan",
        "datastream.stream": "Stream",
        "datastream.timed_stream": "TimedStream",
        "datastream.time_joins": "IntervalJoin IntervalJoined TemporalJoin",
        "datastream.windowed": "WindowedStream",
        "functions.broadcast": "BroadcastContext ReadOnlyContext ReadOnlyTimerContext",
        "functions.co_group": "CoGroupBatch WindowContext",
        "functions.join_function": "IntervalPairContext WindowPairContext",
        "functions.keyed_process": "KeyedContext OpenContext TimerContext",
        "functions.keyed_state": (
            "AppendingState ListState MapState ReadOnlyBroadcastState ValueState"
        ),
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

__all__ = sorted(_NAMES.homes)
