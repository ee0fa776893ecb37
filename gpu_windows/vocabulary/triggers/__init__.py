"""Triggers: when a window fires. Names and rules are Flink's."""

from gpu_windows.vocabulary.triggers.base import (
    AnyWindow,
    Row,
    Trigger,
    TriggerContext,
    TriggerResult,
)
from gpu_windows.vocabulary.triggers.composed import (
    EarlyAndLateTrigger,
    ProcessingTimeoutTrigger,
    PurgingTrigger,
)
from gpu_windows.vocabulary.triggers.continuous import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
)
from gpu_windows.vocabulary.triggers.elements import CountTrigger, DeltaTrigger
from gpu_windows.vocabulary.triggers.ends import (
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
)

__all__ = [
    "AnyWindow",
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountTrigger",
    "DeltaTrigger",
    "EarlyAndLateTrigger",
    "EndOfStreamTrigger",
    "EventTimeTrigger",
    "NeverTrigger",
    "ProcessingTimeTrigger",
    "ProcessingTimeoutTrigger",
    "PurgingTrigger",
    "Row",
    "Trigger",
    "TriggerContext",
    "TriggerResult",
]
