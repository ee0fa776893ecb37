"""How far event time has come: what each input says of itself, and what they say together."""

from __future__ import annotations

from gpu_windows.watermarks.stages import StageWatermarks, stages_in
from gpu_windows.watermarks.strategies import (
    ClockWatermarks,
    NoWatermarks,
    UnionWatermarks,
    WatermarkStrategy,
    check_union_watermarks,
    joined_watermarks,
)
from gpu_windows.watermarks.valve import InputProgress, Valve

__all__ = [
    "ClockWatermarks",
    "InputProgress",
    "NoWatermarks",
    "StageWatermarks",
    "UnionWatermarks",
    "Valve",
    "WatermarkStrategy",
    "check_union_watermarks",
    "joined_watermarks",
    "stages_in",
]
