"""Watermarks: strategies of inputs, and the combined watermark of several inputs."""

from __future__ import annotations

from gpu_windows.vocabulary.watermarks.combined_watermark import CombinedWatermark, InputProgress
from gpu_windows.vocabulary.watermarks.strategies import (
    ClockWatermarks,
    NoWatermarks,
    StageWatermarks,
    WatermarkStrategy,
    stage_watermarks,
)
from gpu_windows.vocabulary.watermarks.union import (
    UnionWatermarks,
    check_union_watermarks,
    join_watermarks,
)

__all__ = [
    "ClockWatermarks",
    "CombinedWatermark",
    "InputProgress",
    "NoWatermarks",
    "StageWatermarks",
    "UnionWatermarks",
    "WatermarkStrategy",
    "check_union_watermarks",
    "join_watermarks",
    "stage_watermarks",
]
