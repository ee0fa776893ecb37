"""What consoles and notebooks show of steps, windows and outputs."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.html_text import table_html, windows_svg

ROWS = pa.table({"k": ["a"], "ts": pa.array([1]).cast(pa.timestamp("us", "UTC")), "v<": [1]})
TIMED = gw.stream(ROWS).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
HOURS = TIMED.key_by("k").window(gw.SlidingEventTimeWindows.of("1 hour", "10 minutes"))


def texts(shown: Any) -> str:
    """Return the text of what a notebook shows, which is well-formed."""
    return " ".join(ElementTree.fromstring(shown._repr_html_()).itertext())


def test_steps_show_columns_and_what_may_come_next() -> None:
    found = texts(TIMED)
    assert "v<: int64" in found
    assert "key_by" in found
    assert "with_outputs" not in found
    found = texts(HOURS)
    assert "sliding 1 h every 10 min, event time" in found
    assert "k: string" in found
    assert HOURS._repr_html_().count("<rect") == 8


def test_a_console_shows_the_same_in_few_lines() -> None:
    assert repr(HOURS).splitlines()[:6] == [
        "WindowedStream",
        "  columns     k: string, ts: timestamp[us, tz=UTC], v<: int64",
        "  time        ts",
        "  watermarks  latest row - 0 s",
        "  key         k",
        "  window      sliding 1 h every 10 min, event time",
    ]
    query: Any = gw.sql("SELECT k FROM r", r=TIMED)
    assert repr(query).splitlines()[:3] == ["SqlQuery", "  query  SELECT k FROM r", "  over   r"]
    assert (
        repr(query).splitlines()[3] == "  next   arrival_order, explain, options, outputs, result"
    )
    with pytest.raises(gw.errors.MissingStepError, match=r"call \.result\(\) before \.show"):
        query.show()


@pytest.mark.parametrize(
    ("windows", "bars"),
    [
        (gw.TumblingEventTimeWindows.of("5 seconds"), 8),
        (gw.CumulativeEventTimeWindows.of("1 day", "1 hour"), 8),
        (gw.CumulativeEventTimeWindows.of("3 hours", "1 hour"), 3),
        (gw.EventTimeSessionWindows.with_gap("5 seconds"), 0),
        (gw.GlobalWindows.create(), 0),
    ],
)
def test_windows_show_a_picture_if_they_have_a_size(windows: Any, bars: int) -> None:
    assert windows.describe() in texts(windows)
    assert windows._repr_html_().count("<rect") == bars


def test_outputs_show_their_plan_and_columns_and_run_nothing() -> None:
    outputs = HOURS.with_outputs().reduce(_fail, ["v<"])
    found = texts(outputs)
    assert "k: string, window_start: timestamp[us, tz=UTC]" in found
    assert all(line in found for line in outputs.explain().splitlines())


def test_outputs_show_the_columns_of_their_selection() -> None:
    outputs = HOURS.with_outputs().aggregate(total=gw.sum("v<"), n=gw.count())
    assert "result k: string, share: double" in texts(outputs.select("k", share="total / n"))


def test_a_query_in_sql_shows_its_text_columns_and_plan() -> None:
    text = """SELECT k, COUNT(*) * 2 AS twice
        FROM TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR)
        WHERE k < 'b' GROUP BY k, window_start, window_end"""
    query = gw.sql(text, clicks=TIMED)
    found = texts(query)
    assert "WHERE k < 'b' GROUP BY" in found
    assert "over clicks" in found
    assert "result k: string, twice: int64" in found
    assert all(line in found for line in query.explain().splitlines())
    assert "twice: int64" in texts(query.outputs())


def _fail(*rows: Any) -> Any:
    raise AssertionError(rows)


def test_every_step_of_a_query_is_shown() -> None:
    keyed = TIMED.key_by("k")
    steps = (gw.stream(ROWS), keyed, keyed.over(gw.Range("5 s")), HOURS.trigger(gw.NeverTrigger()))
    for step in steps:
        assert type(step).__name__ in texts(step)


def test_what_has_a_meaning_in_html_is_escaped() -> None:
    assert "&lt;b&gt;" in table_html("<b>", {})
    assert windows_svg([]) == ""
    assert windows_svg([(0, 1)] * 100).count("<rect") == 24
