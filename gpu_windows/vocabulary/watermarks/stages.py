"""The watermark of a stage whose rows are the results of an earlier one, in the same query."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_windows.vocabulary.options import show_ticks
from gpu_windows.vocabulary.watermarks.strategies import WatermarkStrategy


@dataclass(frozen=True)
class StageWatermarks(WatermarkStrategy):
    """The watermark of an earlier stage, as Flink's operators forward it.

    Parameters
    ----------
    stage : str
        Name of the earlier stage.
    behind : int
        How far it is held back, in ticks, because results come that long after their event time.
    """

    stage: str = ""
    behind: int = 0

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        delay = f", {show_ticks(self.behind)} behind" if self.behind else ""
        return f"that of the stage {self.stage}{delay}"


def stage_watermarks(watermarks: WatermarkStrategy) -> tuple[StageWatermarks, ...]:
    """Return the watermarks of inputs that are earlier stages."""
    return tuple(each for each in watermarks.inputs if isinstance(each, StageWatermarks))
