"""Apache Flink's windows for PySpark, on CUDA and CPU kernels."""

from gpu_windows.aggregates import (
    Aggregate,
    arg_max,
    arg_min,
    bool_and,
    bool_or,
    count,
    first,
    last,
    mean,
    stddev,
    variance,
)
from gpu_windows.aggregates import max_ as max  # noqa: A004
from gpu_windows.aggregates import min_ as min  # noqa: A004
from gpu_windows.aggregates import sum_ as sum  # noqa: A004
from gpu_windows.deltas import Delta
from gpu_windows.evictors import CountEvictor, DeltaEvictor, Element, Evictor, TimeEvictor
from gpu_windows.functions import ProcessContext, ProcessWindowFunction
from gpu_windows.options import Options
from gpu_windows.outputs import Outputs
from gpu_windows.stream import KeyedStream, Stream, TimedStream, WindowedStream, stream
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
from gpu_windows.user_aggregates import AggregateFunction, UserAggregate, user_aggregate
from gpu_windows.watermarks import WatermarkStrategy
from gpu_windows.windows import (
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    GlobalWindow,
    GlobalWindows,
    MergingWindowAssigner,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)

__version__ = "0.1.0"

__all__ = [
    "Aggregate",
    "AggregateFunction",
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountEvictor",
    "CountTrigger",
    "CumulativeEventTimeWindows",
    "Delta",
    "DeltaEvictor",
    "DeltaTrigger",
    "EarlyAndLateTrigger",
    "Element",
    "EndOfStreamTrigger",
    "EventTimeSessionWindows",
    "EventTimeTrigger",
    "Evictor",
    "GlobalWindow",
    "GlobalWindows",
    "KeyedStream",
    "MergingWindowAssigner",
    "NeverTrigger",
    "Options",
    "Outputs",
    "ProcessContext",
    "ProcessWindowFunction",
    "ProcessingTimeSessionWindows",
    "ProcessingTimeTrigger",
    "ProcessingTimeoutTrigger",
    "PurgingTrigger",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "Stream",
    "TimeEvictor",
    "TimeWindow",
    "TimedStream",
    "Trigger",
    "TriggerContext",
    "TriggerResult",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "UserAggregate",
    "WatermarkStrategy",
    "WindowAssigner",
    "WindowedStream",
    "arg_max",
    "arg_min",
    "bool_and",
    "bool_or",
    "count",
    "first",
    "last",
    "max",
    "mean",
    "min",
    "stddev",
    "stream",
    "sum",
    "user_aggregate",
    "variance",
]
