"""What Flink refuses of windows and their parts is refused, with the rule and the value."""

from __future__ import annotations

from typing import Any

import pytest

import gpu_windows as gw
from gpu_windows import errors
from tests.test_custom_parts import windowed


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
        (lambda: gw.CountEvictor.of(-1), errors.InvalidEvictorError, "negative"),
        (lambda: gw.TimeEvictor.of("-1 s"), errors.InvalidEvictorError, "negative"),
        (lambda: gw.ContinuousEventTimeTrigger.of("0 s"), errors.InvalidTriggerError, "positive"),
        (lambda: gw.EarlyAndLateTrigger.of(), errors.InvalidTriggerError, "EventTimeTrigger"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        make()
