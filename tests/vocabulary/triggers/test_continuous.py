"""A trigger that fires at intervals fires at the end, too: alone as in front of an end."""

from __future__ import annotations

import pytest

import gpu_windows as gw
from tests.plots.samples import sample

EVERY = gw.ContinuousEventTimeTrigger.of("3 seconds")
WATERMARKS = gw.WatermarkStrategy.for_bounded_out_of_orderness("4 seconds")


@pytest.mark.parametrize("lateness", ["0 seconds", "7 seconds"])
@pytest.mark.parametrize(
    "assigner",
    [
        gw.TumblingEventTimeWindows.of("10 seconds"),
        gw.SlidingEventTimeWindows.of("10 seconds", "4 seconds"),
    ],
)
def test_alone_it_fires_as_the_early_part_of_a_trigger(
    assigner: gw.functions.WindowAssigner, lateness: str
) -> None:
    keyed = gw.stream(sample()).event_time("ts", WATERMARKS).key_by("sensor")
    found = []
    for trigger in (EVERY, gw.EarlyAndLateTrigger.of(early=EVERY)):
        windowed = keyed.window(assigner).trigger(trigger).allowed_lateness(lateness)
        outputs = windowed.with_firing_columns().with_outputs().aggregate(total=gw.sum("value"))
        firings = gw.trace_firings(outputs, sample()).firings
        found.append([(f.step, f.start, f.end, f.timing, f.rows) for f in firings])
    assert found[0] == found[1]
    timings = {timing for *_, timing, _ in found[0]}
    assert timings == {"early", "on_time"} | ({"late"} if lateness[0] == "7" else set())
