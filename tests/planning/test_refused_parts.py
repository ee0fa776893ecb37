"""What Flink refuses of windows and their parts is refused, with the rule and the value."""

from __future__ import annotations

from typing import Any

import pytest

import gpu_windows as gw
from gpu_windows import errors
from tests.datastream.custom_parts import windowed


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (
            lambda: (
                windowed(gw.EventTimeSessionWindows.with_gap("1 s"))
                .trigger(gw.DeltaTrigger.of(1, gw.Delta.abs_diff("value")))
                .aggregate(n=gw.count())
            ),
            errors.InvalidTriggerError,
            "can merge, got DeltaTrigger",
        ),
        (
            lambda: (
                windowed(gw.GlobalWindows.create())
                .trigger(gw.PurgingTrigger.of(gw.EventTimeTrigger.create()))
                .aggregate(n=gw.count())
            ),
            errors.InvalidTriggerError,
            "no end",
        ),
        (
            lambda: windowed(gw.TumblingProcessingTimeWindows.of("1 s")).aggregate(n=gw.count()),
            errors.UnsupportedQueryError,
            "bounded input",
        ),
        (
            lambda: (
                windowed(gw.GlobalWindows.create())
                .trigger(gw.ContinuousEventTimeTrigger.of("1 s"))
                .aggregate(n=gw.count())
            ),
            errors.UnsupportedQueryError,
            "without end",
        ),
        (
            lambda: windowed(gw.EventTimeSessionWindows.with_dynamic_gap("value")).aggregate(
                n=gw.count()
            ),
            errors.ColumnTypeError,
            "column 'value'",
        ),
        (
            lambda: (
                windowed(gw.GlobalWindows.create())
                .trigger(gw.DeltaTrigger.of(1, gw.Delta.abs_diff("key")))
                .aggregate(n=gw.count())
            ),
            errors.ColumnTypeError,
            "numbers",
        ),
        (lambda: gw.EventTimeSessionWindows.with_gap("0 s"), errors.InvalidWindowError, "gap"),
        (lambda: gw.CountTrigger.of(1.5), errors.InvalidTriggerError, "integer, got 1.5"),  # type: ignore[arg-type]
        (lambda: gw.CountTrigger.of(True), errors.InvalidTriggerError, "integer, got True"),
        (lambda: gw.CountEvictor.of("3"), errors.InvalidEvictorError, "integer"),  # type: ignore[arg-type]
        (
            lambda: gw.EarlyAndLateTrigger.of(early=2),  # type: ignore[arg-type]
            errors.InvalidTriggerError,
            "made of triggers, got 2",
        ),
        (
            lambda: gw.DeltaTrigger.of("x", gw.Delta.abs_diff("value")),  # type: ignore[arg-type]
            errors.InvalidTriggerError,
            "must be a number",
        ),
        (
            lambda: windowed(gw.TumblingEventTimeWindows.of("1 s")).collect_lists(["value"]),  # type: ignore[arg-type]
            errors.QueryError,
            "sequence of names",
        ),
        (
            lambda: windowed(gw.TumblingEventTimeWindows.of("1 s")).reduce(lambda a, b: a, "value"),
            errors.QueryError,
            "sequence of names",
        ),
        (
            lambda: windowed(gw.TumblingEventTimeWindows.of("1 minute")).reduce(
                lambda a, b: 1,  # type: ignore[arg-type,return-value]
                ["value"],
            ),
            errors.QueryError,
            "must return exactly value, got 1",
        ),
        (lambda: gw.CountEvictor.of(-1), errors.InvalidEvictorError, "negative"),
        (lambda: gw.TimeEvictor.of("-1 s"), errors.InvalidEvictorError, "negative"),
        (lambda: gw.ContinuousEventTimeTrigger.of("0 s"), errors.InvalidTriggerError, "positive"),
        (lambda: gw.EarlyAndLateTrigger.of(), errors.InvalidTriggerError, "EventTimeTrigger"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        make()


def test_what_is_no_query_on_a_stream_is_not_written() -> None:
    counted = windowed(gw.TumblingEventTimeWindows.of("1 s"))
    for made, text in (
        (counted.aggregate(n=gw.count()), r"say \.with_outputs\(\) before.*got Table"),
        (counted.with_outputs().aggregate(n=gw.count()), r"with spark\.readStream, got a table"),
    ):
        with pytest.raises(errors.QueryError, match=text):
            gw.write_stream(made, "folder", "checkpoint")
