"""Watermarks of several inputs: those of a union and of a join."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gpu_windows.errors import QueryError
from gpu_windows.vocabulary.watermarks.strategies import WatermarkStrategy


@dataclass(frozen=True)
class UnionWatermarks(WatermarkStrategy):
    """The least of the watermarks of several inputs; on streams Spark follows each.

    Parameters
    ----------
    parts : tuple of WatermarkStrategy
        The strategy of each input.
    """

    parts: tuple[WatermarkStrategy, ...] = ()

    def __post_init__(self) -> None:
        closing = {each.closes for each in self.inputs}
        if len(closing) > 1:
            rule = "either all inputs close_when_idle, or none does: the watermark is that of all"
            raise QueryError(rule, value=self.describe())

    def watermark(self, max_ts: int) -> int:
        """Return the least watermark of the inputs."""
        return min(part.watermark(max_ts) for part in self.parts)

    @property
    def inputs(self) -> tuple[WatermarkStrategy, ...]:
        """The strategy of each input, in order; a part may be a union itself."""
        return tuple(each for part in self.parts for each in part.inputs)

    @property
    def is_guarded(self) -> bool:
        """Whether a row of any input may be too far ahead."""
        return any(part.is_guarded for part in self.parts)

    @property
    def in_state(self) -> WatermarkStrategy:
        """The union without the parameters that state does not depend on."""
        return replace(self, parts=tuple(part.in_state for part in self.parts))

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        parts = (f"{n}: {each.describe()}" for n, each in enumerate(self.inputs, 1))
        return f"the least of {'; '.join(parts)}"


def check_union_watermarks(parts: Iterable[WatermarkStrategy]) -> None:
    """Refuse strategies that cannot be combined in a union of inputs."""
    for part in parts:
        if part.column is not None or part.in_processing_time:
            rule = "a union takes watermarks that follow the latest row"
            raise QueryError(rule, value=part.describe())


def join_watermarks(left: WatermarkStrategy, right: WatermarkStrategy) -> WatermarkStrategy:
    """Return the watermarks of two inputs that are joined: the least of both.

    Raises
    ------
    QueryError
        If one is of event time and the other of processing time.
    """
    kinds = {(part.in_processing_time, part.moves) for part in (left, right)}
    if len(kinds) > 1:
        rule = "both inputs of a join have an event time, or both are taken as they arrive"
        raise QueryError(rule, value=f"{left.describe()} and {right.describe()}")
    if left.in_processing_time or not left.moves:
        return left
    return UnionWatermarks(parts=(left, right))
