"""Triggers: when a window fires. Names and rules are Flink's."""

from gpu_windows.vocabulary.triggers.base import (
    AnyWindow,
    Row,
    Trigger,
    TriggerContext,
    TriggerResult,
)
from gpu_windows.vocabulary.triggers.composed import EarlyAndLateTrigger, PurgingTrigger
from gpu_windows.vocabulary.triggers.continuous import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
)
from gpu_windows.vocabulary.triggers.elements import CountTrigger, DeltaTrigger, NeverTrigger
from gpu_windows.vocabulary.triggers.event_time import EndOfStreamTrigger, EventTimeTrigger
from gpu_windows.vocabulary.triggers.processing_time import (
    ProcessingTimeoutTrigger,
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
