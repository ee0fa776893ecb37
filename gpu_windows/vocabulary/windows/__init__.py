"""Window assigners: which windows a row belongs to. Names and rules are Flink's."""

from gpu_windows.vocabulary.windows.base import (
    AssignerContext,
    GlobalWindow,
    MergingWindowAssigner,
    TimeWindow,
    Window,
    WindowAssigner,
    check_assigner,
)
from gpu_windows.vocabulary.windows.calendar import CalendarWindows
from gpu_windows.vocabulary.windows.global_ import GlobalWindows
from gpu_windows.vocabulary.windows.processing_time import (
    CumulativeProcessingTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingProcessingTimeWindows,
)
from gpu_windows.vocabulary.windows.sessions import (
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
)
from gpu_windows.vocabulary.windows.sliced import (
    CumulativeEventTimeWindows,
    MultiLengthEventTimeWindows,
    SlicedAssigner,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

__all__ = [
    "AssignerContext",
    "CalendarWindows",
    "CumulativeEventTimeWindows",
    "CumulativeProcessingTimeWindows",
    "EventTimeSessionWindows",
    "GlobalWindow",
    "GlobalWindows",
    "MergingWindowAssigner",
    "MultiLengthEventTimeWindows",
    "ProcessingTimeSessionWindows",
    "SlicedAssigner",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "TimeWindow",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "Window",
    "WindowAssigner",
    "check_assigner",
]
