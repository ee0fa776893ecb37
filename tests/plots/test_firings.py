"""The timeline of firings says what the operator does, and is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.plots import timeline
from gpu_windows.rules import LONG_MIN
from tests.plots.samples import SECOND, sample


def windowed(assigner: gw.functions.WindowAssigner) -> gw.typing.WindowedStream:
    strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("4 seconds")
    return gw.stream(sample()).event_time("ts", strategy).key_by("sensor").window(assigner)


def shown() -> gw.typing.Outputs:
    """The query of the picture in docs/windows.md."""
    return (
        windowed(gw.TumblingEventTimeWindows.of("10 seconds"))
        .trigger(gw.EarlyAndLateTrigger.of(early=gw.CountTrigger.of(2)))
        .evictor(gw.CountEvictor.of(2))
        .allowed_lateness("5 seconds")
        .with_outputs()
        .aggregate(total=gw.sum("value"))
    )


def trace(outputs: gw.typing.Outputs) -> Any:
    return gw.trace_firings(outputs, sample())


def test_firings_evictions_and_late_rows() -> None:
    found = trace(shown())
    of_a = [
        (f.step, (f.start or 0) // SECOND, f.timing, f.rows)
        for f in found.firings
        if f.key == ("a",)
    ]
    assert of_a == [
        (1, 0, "early", (0, 1)),
        (4, 0, "on_time", (0, 1)),
        (5, 0, "late", (1, 5)),
        (7, 10, "early", (3, 7)),
        (8, 10, "on_time", (3, 7)),
        (10, 10, "late", (7, 10)),
        (13, 20, "on_time", (6,)),
    ]
    assert [(e.step, e.row) for e in found.evictions] == [(5, 0), (10, 3)]
    rejected = {row.number: row.rejected for row in found.rows if row.rejected}
    assert rejected == {9: "late", 12: "null_timestamp"}
    assert found.watermarks[:3] == [2 * SECOND - 4 * SECOND - 1, 5 * SECOND - 1, 5 * SECOND - 1]


def test_no_watermark_before_the_first_row_with_a_time() -> None:
    only_null = sample().slice(12)
    assert gw.trace_firings(shown(), only_null).watermarks == [LONG_MIN]


@pytest.mark.parametrize(
    "assigner",
    [
        gw.TumblingEventTimeWindows.of("10 seconds"),
        gw.SlidingEventTimeWindows.of("10 seconds", "5 seconds"),
        gw.EventTimeSessionWindows.with_gap("6 seconds"),
        gw.GlobalWindows.create_with_end_of_stream_trigger(),
    ],
)
def test_every_kind_of_window_is_drawn(
    assigner: gw.functions.WindowAssigner, tmp_path: Path
) -> None:
    outputs = windowed(assigner).with_outputs().aggregate(n=gw.count())
    figure = gw.plot_firings(outputs, sample())
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["a", "b"]
    colours = {line.get_color() for axes in figure.axes for line in axes.lines}
    timings = {firing.timing for firing in trace(outputs).firings}
    assert {timeline.TIMINGS[timing] for timing in timings} <= colours
    figure.savefig(tmp_path / "firings.png")


def test_an_empty_sample_is_an_empty_picture(tmp_path: Path) -> None:
    figure = gw.plot_firings(shown(), sample().slice(0, 0))
    figure.savefig(tmp_path / "nothing.png")


def test_outputs_and_a_table_are_asked_for() -> None:
    for arguments in ((shown().plan, sample()), (shown(), None)):
        with pytest.raises(errors.QueryError, match="over a pyarrow"):
            gw.plot_firings(*arguments)


def test_processing_time_is_refused() -> None:
    trigger = gw.ProcessingTimeoutTrigger.of(gw.CountTrigger.of(3), "1 second")
    made = windowed(gw.TumblingEventTimeWindows.of("10 seconds")).trigger(trigger)
    with pytest.raises(errors.UnsupportedQueryError):
        gw.plot_firings(made.with_outputs().aggregate(n=gw.count()), sample())


def test_times_without_a_zone_are_not_of_utc() -> None:
    """They are drawn where the same readings of UTC are."""
    rows = sample()
    naive = rows.set_column(1, "ts", rows["ts"].cast(pa.timestamp("us")))
    labels = []
    for table in (rows, naive):
        timed = gw.stream(table).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        windows = timed.key_by("sensor").window(gw.TumblingEventTimeWindows.of("10 seconds"))
        outputs = windows.with_outputs().aggregate(n=gw.count())
        labels.append(gw.plot_firings(outputs, table).axes[-1].get_xlabel())
        assert gw.trace_firings(outputs, table).firings[0].start == 0
    assert labels == ["event time, UTC", "event time"]
