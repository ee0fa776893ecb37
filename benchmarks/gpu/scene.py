"""What a step is told: on what it runs, how large, and what was measured before."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic, perf_counter
from typing import Any

from gpu_windows.vocabulary.options import Device

Row = dict[str, Any]

#: What takes so many seconds is timed once.
_SLOW = 1.0


@dataclass(frozen=True)
class Scene:
    """The setting of a step.

    Parameters
    ----------
    dry : bool
        Whether kernels run on the CPU, at tiny sizes, so that all but the launches is tried.
    seconds : float
        How long the step may take.
    copy_rate : float, optional
        Bytes a second, read and written, of a copy on the device.
    host_rate : float, optional
        Bytes a second of a copy from pinned memory to the device.
    began : float
        By the monotonic clock.
    """

    dry: bool
    seconds: float
    copy_rate: float | None = None
    host_rate: float | None = None
    began: float = field(default_factory=monotonic)

    @property
    def left(self) -> float:
        """Seconds until the step is stopped."""
        return max(self.began + self.seconds - monotonic(), 0.0)

    @property
    def device(self) -> Device:
        """What kernels run on: "cuda", or "cpu" when dry."""
        return "cpu" if self.dry else "cuda"

    def sizes(self, *powers: int) -> list[int]:
        """Return numbers of rows, powers of two; small ones when dry."""
        return [1 << 10, 1 << 12] if self.dry else [1 << power for power in powers]

    @property
    def repeats(self) -> int:
        """Number of timed runs of a measurement."""
        return 2 if self.dry else 5


def timed(scene: Scene, work: Callable[[], object]) -> tuple[float, float]:
    """Return the medians of device and host seconds of some work, after one run that warms up.

    Device time is that between two events on the stream of the kernels; when dry, the host's.
    """
    return _medians(scene, work, _on_host if scene.dry else _on_device)


def timed_on_host(scene: Scene, work: Callable[[], object]) -> float:
    """Return the median of host seconds of some work that waits for what it starts."""
    return _medians(scene, work, _on_host)[1]


def _medians(
    scene: Scene,
    work: Callable[[], object],
    measured: Callable[[Callable[[], object]], tuple[float, float]],
) -> tuple[float, float]:
    began = perf_counter()
    work()
    slow = perf_counter() - began > _SLOW
    runs = [measured(work) for _ in range(1 if slow else scene.repeats)]
    device, host = zip(*runs, strict=True)
    return statistics.median(device), statistics.median(host)


def _on_host(work: Callable[[], object]) -> tuple[float, float]:
    began = perf_counter()
    work()
    seconds = perf_counter() - began
    return seconds, seconds


def _on_device(work: Callable[[], object]) -> tuple[float, float]:
    import cupy

    from gpu_windows.kernels.cuda.session import working

    with working() as session:
        first, last = cupy.cuda.Event(), cupy.cuda.Event()
        began = perf_counter()
        first.record(session.stream)
        work()
        last.record(session.stream)
        last.synchronize()
        seconds = perf_counter() - began
        return cupy.cuda.get_elapsed_time(first, last) / 1e3, seconds
