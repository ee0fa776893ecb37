"""Whether the cost stays flat while windows grow at a fixed slide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.contest import Factory, Window, Work, base_name
from benchmarks.measure import Measurement
from benchmarks.stage import Stage
from benchmarks.suite import sliding

#: Sizes in slides: 10, 60 and 600 minutes at the default slide of a minute.
SIZES = (10, 60, 600)


def _sized(factory: Factory, slides: int) -> Factory:
    def sized(stage: Stage) -> Work:
        slide = stage.window.slide
        return factory(stage.at(Window(slides * slide, slide)))

    return sized


def _ratios(measurements: Sequence[Measurement]) -> list[str]:
    base = {base_name(m.contestant): m for m in reversed(measurements)}
    lines = []
    for name, least in base.items():
        times = [m.median / least.median for m in measurements if base_name(m.contestant) == name]
        lines.append(f"{name}: {' : '.join(f'{ratio:.2f}' for ratio in times)}")
    return ["cost over that of the smallest size:", *reversed(lines)]


BENCHMARK = replace(
    sliding.BENCHMARK,
    name="sliding_flat",
    about="windows of 10, 60 and 600 slides (--slide; --size has no effect), from Parquet",
    contestants={
        f"{name}[{slides} slides]": _sized(factory, slides)
        for name, factory in sliding.BENCHMARK.contestants.items()
        if name != "identity"
        for slides in SIZES
    },
    peers=(),
    summary=_ratios,
)
