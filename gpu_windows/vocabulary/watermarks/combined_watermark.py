"""Combined watermark of several inputs, some of which may be idle.

It does what Flink's StatusWatermarkValve does with the timers of WatermarksWithIdleness, as values:
each micro-batch makes a new one. Watermarks are in ticks, the clock is in milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpu_windows.rules import LONG_MIN


@dataclass(frozen=True)
class InputProgress:
    """Watermark and activity of an input.

    Parameters
    ----------
    watermark : int
        The greatest watermark that it has reported; `LONG_MIN` before the first one.
    inactive_since : int, optional
        The time of the first micro-batch without a report since the last report, in milliseconds;
        None if it was active in the last micro-batch.
    is_idle : bool
        Whether it has been inactive for longer than its timeout; then it does not hold the others.
    """

    watermark: int = LONG_MIN
    inactive_since: int | None = None
    is_idle: bool = False

    def report(self, watermark: int) -> InputProgress:
        """Return the progress after a report; a lower watermark than before changes nothing."""
        return InputProgress(max(self.watermark, watermark))

    def stay_inactive(self, now: int, timeout: int | None) -> InputProgress:
        """Return the progress after a micro-batch without a report.

        The first such one starts the timer, as Flink's first check without activity does.

        Parameters
        ----------
        now : int
            The time of the micro-batch, in milliseconds.
        timeout : int, optional
            How long it may be inactive, in milliseconds; None: for ever.
        """
        if timeout is None:
            return self
        if self.inactive_since is None:
            return replace(self, inactive_since=now)
        return replace(self, is_idle=now - self.inactive_since > timeout)


@dataclass(frozen=True)
class CombinedWatermark:
    """Combined watermark of all inputs.

    Parameters
    ----------
    inputs : tuple of InputProgress
    watermark : int
        The combined watermark, which never goes back. `LONG_MIN` before there is one.
    moved_at : int
        The time of the micro-batch in which ``watermark`` was reached, in milliseconds; -1 before
        the first one.
    idle_since : int, optional
        The time of the micro-batch since which all inputs are idle; None while one is not.
    """

    inputs: tuple[InputProgress, ...]
    watermark: int = LONG_MIN
    moved_at: int = -1
    idle_since: int | None = None

    def advance(
        self, now: int, reported: Mapping[int, int], timeouts: Sequence[int | None]
    ) -> CombinedWatermark:
        """Return the combined watermark after a micro-batch.

        Parameters
        ----------
        now : int
            The time of the micro-batch, in milliseconds.
        reported : dict of int to int
            Number of an input to the greatest watermark that it reported. Inputs without an entry
            were inactive.
        timeouts : sequence of int or None
            How long each input may be inactive, in milliseconds.
        """
        inputs = tuple(
            each.report(reported[number])
            if number in reported
            else each.stay_inactive(now, timeouts[number])
            for number, each in enumerate(self.inputs)
        )
        watermark = combine_watermarks(self.watermark, inputs)
        moved_at = self.moved_at if watermark == self.watermark and self.moved_at >= 0 else now
        idle_since = None
        if all(each.is_idle for each in inputs):
            idle_since = now if self.idle_since is None else self.idle_since
        return CombinedWatermark(inputs, watermark, moved_at, idle_since)

    @property
    def holder(self) -> int | None:
        """The number of the input that holds the watermark; None if all are idle."""
        holding = [n for n, each in enumerate(self.inputs) if _is_aligned(each, self.watermark)]
        holding = holding or [n for n, each in enumerate(self.inputs) if not each.is_idle]
        return min(holding, key=lambda n: self.inputs[n].watermark, default=None)

    def next_check(self, now: int, timeouts: Sequence[int | None]) -> int | None:
        """Return the time at which it may change without a report; None if it cannot.

        Parameters
        ----------
        now : int
            The time of the last micro-batch, in milliseconds.
        timeouts : sequence of int or None
            See `advance`.
        """
        return min(self._check_times(now, timeouts), default=None)

    def _check_times(self, now: int, timeouts: Sequence[int | None]) -> Iterator[int]:
        for each, timeout in zip(self.inputs, timeouts, strict=True):
            if timeout is None or each.is_idle:
                continue
            since = each.inactive_since
            yield now + 1 if since is None else max(since + timeout, now) + 1


def combine_watermarks(watermark: int, inputs: Sequence[InputProgress]) -> int:
    """Return the watermark that inputs allow, given the previous combined one.

    It is the least watermark of the active inputs that are not behind the previous one, because an
    input that becomes active behind it has to catch up first. If all inputs are idle it is the
    greatest of all, because none would have held the others if they had become idle one by one.
    """
    if all(each.is_idle for each in inputs):
        return max(watermark, *(each.watermark for each in inputs))
    return min((e.watermark for e in inputs if _is_aligned(e, watermark)), default=watermark)


def _is_aligned(progress: InputProgress, watermark: int) -> bool:
    """Whether an input takes part (Flink: is aligned)."""
    return not progress.is_idle and progress.watermark >= watermark
