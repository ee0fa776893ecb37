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
from gpu_windows.options import Options
from gpu_windows.outputs import Outputs
from gpu_windows.stream import KeyedStream, Stream, TimedStream, WindowedStream, stream
from gpu_windows.triggers import CountTrigger, EventTimeTrigger, PurgingTrigger, Trigger
from gpu_windows.watermarks import WatermarkStrategy
from gpu_windows.windows import (
    CumulativeEventTimeWindows,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    WindowAssigner,
)

__version__ = "0.1.0"

__all__ = [
    "Aggregate",
    "CountTrigger",
    "CumulativeEventTimeWindows",
    "EventTimeTrigger",
    "KeyedStream",
    "Options",
    "Outputs",
    "PurgingTrigger",
    "SlidingEventTimeWindows",
    "Stream",
    "TimeWindow",
    "TimedStream",
    "Trigger",
    "TumblingEventTimeWindows",
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
    "variance",
]
