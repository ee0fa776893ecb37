"""The first result of a cold worker: fresh Spark session, fresh Python, little data."""

from __future__ import annotations

from collections.abc import Callable
from tempfile import TemporaryDirectory

from benchmarks.contest import Benchmark, Factory, Work
from benchmarks.first_result import measure
from benchmarks.stage import Stage
from gpu_windows.kernels.compile import CACHE_VARIABLE


def _warm(contestant: str, *, floor: bool = False) -> Factory:
    return lambda stage: Work(_run(stage, contestant), stage.window, floor=floor)


def _cold(contestant: str) -> Factory:
    def factory(stage: Stage) -> Work:
        run = _run(stage, contestant)

        def without_cache() -> float:
            with TemporaryDirectory(prefix="gpu_windows-cold-") as cache:
                return run({CACHE_VARIABLE: cache})

        return Work(without_cache, stage.window)

    return factory


def _run(stage: Stage, contestant: str) -> Callable[..., float]:
    return lambda variables=None: measure(stage, contestant, variables or {})


BENCHMARK = Benchmark(
    name="cold",
    about="from a new Spark session to its first result: new JVM and Python workers",
    size="1 minute",
    rows=100_000,
    contestants={
        "gpu_windows": _warm("gpu_windows"),
        "gpu_windows[no cache]": _cold("gpu_windows"),
        "gpu_windows_kernels": _warm("gpu_windows_kernels"),
        "gpu_windows_kernels[no cache]": _cold("gpu_windows_kernels"),
        "spark": _warm("spark"),
        "identity": _warm("identity", floor=True),
    },
    peers=("spark", "identity"),
)
