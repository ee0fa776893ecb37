"""The watermark of a stage whose rows are the results of an earlier one, in the same query."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_windows.vocabulary.options import show_ticks
from gpu_windows.vocabulary.watermarks.strategies import WatermarkStrategy


@dataclass(frozen=True)
class StageWatermarks(WatermarkStrategy):
    """That which an earlier stage has reached, as Flink's operators forward it.

    Parameters
    ----------
    stage : str
        Name of the earlier stage.
    behind : int
        How far, in ticks, it is held back, since results come so long after their time.
    """

    stage: str = ""
    behind: int = 0

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        held = f", {show_ticks(self.behind)} behind" if self.behind else ""
        return f"that of the stage {self.stage}{held}"


def stages_in(watermarks: WatermarkStrategy) -> tuple[StageWatermarks, ...]:
    """Return those of earlier stages among the watermarks of all inputs."""
    return tuple(each for each in watermarks.inputs if isinstance(each, StageWatermarks))
