"""The watermark of several inputs, of which some may be idle.

Flink's StatusWatermarkValve with the timers of its WatermarksWithIdleness, as values: a micro-batch
makes a new one of what it has seen. Watermarks are ticks, the clock is in milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpu_windows.rules import LONG_MIN


@dataclass(frozen=True)
class InputProgress:
    """How far an input is.

    Parameters
    ----------
    watermark : int
        The greatest that it has said; `LONG_MIN` before it said one.
    silent_since : int, optional
        The first micro-batch in which it said nothing after it had said something, in
        milliseconds; None if it spoke in the last one.
    is_idle : bool
        Whether it has been silent for longer than it may; then it holds nobody.
    """

    watermark: int = LONG_MIN
    silent_since: int | None = None
    is_idle: bool = False

    def heard(self, watermark: int) -> InputProgress:
        """Return it after a micro-batch in which it said a watermark; a lower one is no news."""
        return InputProgress(max(self.watermark, watermark))

    def silent(self, now: int, timeout: int | None) -> InputProgress:
        """Return it after a micro-batch in which it said nothing.

        The first of them starts the timer, as Flink's first look that finds no activity.

        Parameters
        ----------
        now : int
            The time of the micro-batch, in milliseconds.
        timeout : int, optional
            How long it may be silent, in milliseconds; None: for ever.
        """
        if timeout is None:
            return self
        if self.silent_since is None:
            return replace(self, silent_since=now)
        return replace(self, is_idle=now - self.silent_since > timeout)


@dataclass(frozen=True)
class Valve:
    """How far event time has come, by all inputs.

    Parameters
    ----------
    inputs : tuple of InputProgress
    watermark : int
        That of all: it never goes back. `LONG_MIN` before there is one.
    moved_at : int
        The time of the micro-batch in which ``watermark`` was reached, in milliseconds; -1 before
        the first one.
    idle_since : int, optional
        The time of the one since which all inputs are idle; None while one is not.
    """

    inputs: tuple[InputProgress, ...]
    watermark: int = LONG_MIN
    moved_at: int = -1
    idle_since: int | None = None

    def after(self, now: int, reported: Mapping[int, int], timeouts: Sequence[int | None]) -> Valve:
        """Return it after a micro-batch.

        Parameters
        ----------
        now : int
            The time of the micro-batch, in milliseconds.
        reported : dict of int to int
            Number of an input to the greatest watermark that it reported. One that is not there was
            silent.
        timeouts : sequence of int or None
            How long each input may be silent, in milliseconds.
        """
        inputs = tuple(
            each.heard(reported[number])
            if number in reported
            else each.silent(now, timeouts[number])
            for number, each in enumerate(self.inputs)
        )
        reached = combined(self.watermark, inputs)
        moved_at = self.moved_at if reached == self.watermark and self.moved_at >= 0 else now
        idle_since = None
        if all(each.is_idle for each in inputs):
            idle_since = now if self.idle_since is None else self.idle_since
        return Valve(inputs, reached, moved_at, idle_since)

    @property
    def holder(self) -> int | None:
        """The number of the input that the watermark waits for; None if all are idle."""
        waited = [n for n, each in enumerate(self.inputs) if _counts(each, self.watermark)]
        waited = waited or [n for n, each in enumerate(self.inputs) if not each.is_idle]
        return min(waited, key=lambda n: self.inputs[n].watermark, default=None)

    def next_look(self, now: int, timeouts: Sequence[int | None]) -> int | None:
        """Return the time at which it may change though nobody says anything; None: at none.

        Parameters
        ----------
        now : int
            The time of the micro-batch that it is after, in milliseconds.
        timeouts : sequence of int or None
            See `after`.
        """
        return min(self._looks(now, timeouts), default=None)

    def _looks(self, now: int, timeouts: Sequence[int | None]) -> Iterator[int]:
        for each, timeout in zip(self.inputs, timeouts, strict=True):
            if timeout is None or each.is_idle:
                continue
            since = each.silent_since
            yield now + 1 if since is None else max(since + timeout, now) + 1


def combined(watermark: int, inputs: Sequence[InputProgress]) -> int:
    """Return the watermark that inputs allow, given the one that was reached.

    The least of the inputs that are active and not behind it: one that wakes up behind has to catch
    up first. If all are idle the greatest of all, for none would hold any other if they had become
    so one by one.
    """
    if all(each.is_idle for each in inputs):
        return max(watermark, *(each.watermark for each in inputs))
    return min((e.watermark for e in inputs if _counts(e, watermark)), default=watermark)


def _counts(progress: InputProgress, watermark: int) -> bool:
    """Whether an input takes part (Flink: is aligned)."""
    return not progress.is_idle and progress.watermark >= watermark
