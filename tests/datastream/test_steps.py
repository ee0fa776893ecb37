"""What comes too early in a query is told what comes first."""

from __future__ import annotations

import copy
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import FunctionFailedError, MissingStepError, QueryError
from tests.datastream.test_api import WATERMARKS, flights

BEGUN = gw.stream(flights())
TIMED = BEGUN.event_time("ts", WATERMARKS)
KEYED = TIMED.key_by("origin")
BY_KEY = "key_by(column)"
BY_TIME = "event_time(column, watermarks)"


@pytest.mark.parametrize(
    ("step", "name", "between"),
    [
        (KEYED, "aggregate", "window(assigner)"),
        (TIMED, "process", BY_KEY),
        (TIMED, "interval_join", BY_KEY),
        (TIMED, "trigger", f"{BY_KEY}.window(assigner)"),
        (BEGUN, "union", BY_TIME),
        (BEGUN, "window", f"{BY_TIME}.{BY_KEY}"),
        (BEGUN, "aggregate", f"{BY_TIME}.{BY_KEY}.window(assigner)"),
    ],
)
def test_what_comes_first_is_told(step: Any, name: str, between: str) -> None:
    with pytest.raises(MissingStepError) as caught:
        getattr(step, name)
    assert caught.value.rule == f"say .{between} before .{name}"
    assert caught.value.value == type(step).__name__
    assert not hasattr(step, name)


WINDOWED = KEYED.window(gw.TumblingEventTimeWindows.of("1 s"))


@pytest.mark.parametrize(
    ("step", "name", "text"),
    [
        (TIMED, "groupBy", "say .key_by for .groupBy"),
        (KEYED, "countWindow", "say .count_window for .countWindow"),
        (WINDOWED, "agg", "say .aggregate for .agg"),
        (WINDOWED, "allowedLateness", "say .allowed_lateness for .allowedLateness"),
        (KEYED, "agg", "say .window(assigner) before .aggregate"),
        (BEGUN, "keyBy", "say .key_by for .keyBy"),
        (KEYED.join(KEYED), "select", "say .window(assigner) before .select"),
        (WINDOWED.outputs(n=gw.count()), "show", "say .result() before .show"),
    ],
)
def test_names_of_spark_and_flink_are_told_ours(step: Any, name: str, text: str) -> None:
    with pytest.raises(MissingStepError) as caught:
        getattr(step, name)
    assert (caught.value.rule, caught.value.value) == (text, type(step).__name__)


@pytest.mark.parametrize("step", [BEGUN, TIMED, KEYED])
def test_what_no_step_has_is_an_attribute_error_as_ever(step: Any) -> None:
    for name in ("aggregates", "_bound", "mro", "register"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as caught:
            getattr(step, name)
        assert not isinstance(caught.value, MissingStepError)
    assert copy.copy(step) == step


@pytest.mark.parametrize("right", [BEGUN, TIMED])
def test_connect_says_how_a_stream_without_keys_is_connected(right: Any) -> None:
    with pytest.raises(QueryError, match=r"or \.broadcast\(\) of one without, got"):
        KEYED.connect(right)


def test_a_function_that_sees_no_column_is_told_so() -> None:
    class Delays(gw.functions.KeyedProcessFunction):
        def process_element(self, row: Any, context: Any) -> Any:
            del context
            yield {"delay": row["delay"]}

    with pytest.raises(FunctionFailedError, match="a row of no columns: the query names none"):
        KEYED.process(Delays(), output=pa.schema({"delay": pa.int32()}))
