"""What comes too early in a query is told what comes first."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import FunctionFailedError, InvalidOptionError, MissingStepError, QueryError
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
        (BEGUN, "with_windows", BY_TIME),
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
        (WINDOWED, "collect", "say .collect_lists for .collect"),
        (WINDOWED, "orderBy", "say .arrival_order for .orderBy"),
        (WINDOWED, "rollup", "say .grouping_sets('rollup') for .rollup"),
        (
            WINDOWED,
            "explain",
            "say .with_outputs(), the verb, and explain() of its outputs for .explain",
        ),
        (KEYED.interval_join(KEYED), "select", "say .between(lower, upper) before .select"),
        (
            WINDOWED.with_outputs().aggregate(n=gw.count()),
            "show",
            "outputs may be several tables: call .result() before .show",
        ),
    ],
)
def test_names_of_spark_and_flink_are_told_ours(step: Any, name: str, text: str) -> None:
    with pytest.raises(MissingStepError) as caught:
        getattr(step, name)
    assert (caught.value.rule, caught.value.value) == (text, type(step).__name__)


EARLY = "before keys and windows"
SINKS = "say .with_outputs(), the verb, and gw.write_stream(outputs, sink, checkpoint), for"
RESULTS = "say a verb that ends the query, such as aggregate(n=gw.count()): results have"


@pytest.mark.parametrize("step", [KEYED, WINDOWED])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("where", f"say .where {EARLY}"),
        ("filter", f"say .where {EARLY}, for .filter"),
        ("map", f"say .with_columns {EARLY}, for .map"),
        ("withColumn", f"say .with_columns {EARLY}, for .withColumn"),
        ("select", f"say .select {EARLY}"),
        ("drop", f"say .project {EARLY}, for .drop"),
        ("flat_map", f"say .explode(column, name) {EARLY}, for .flat_map"),
        ("groupBy", "say .key_by once, with all columns of the key, for .groupBy"),
        ("withWatermark", "say .event_time once, of gw.stream(...), for .withWatermark"),
        (
            "assign_timestamps_and_watermarks",
            "say .event_time once, of gw.stream(...), for .assign_timestamps_and_watermarks",
        ),
        (
            "side_output_late_data",
            "say .with_outputs(), the verb, and late() of its outputs for .side_output_late_data",
        ),
        ("show", f"{RESULTS} .show"),
        ("toPandas", f"{RESULTS} .toPandas"),
        ("sink_to", f"{SINKS} .sink_to"),
        ("writeStream", f"{SINKS} .writeStream"),
    ],
)
def test_calls_after_key_by_that_belong_elsewhere_say_where(
    step: Any, name: str, text: str
) -> None:
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


MINUTE = gw.TumblingEventTimeWindows.of("1 minute")
#: A step of every kind that has verbs, with one of them.
VERBS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "windows": (WINDOWED, lambda s: s.aggregate(n=gw.count())),
    "lists": (WINDOWED, lambda s: s.collect_lists("delay")),
    "first rows": (KEYED, lambda s: s.top(1, "origin")),
    "over": (KEYED.over(gw.Rows(2)), lambda s: s.aggregate(n=gw.count())),
    "match": (KEYED.match_recognize("A+ B"), lambda s: s.measures(n="COUNT(A.origin)")),
    "window join": (KEYED.join(KEYED), lambda s: s.window(MINUTE).select(["origin"], ["origin"])),
    "co-group": (KEYED.co_group(KEYED), lambda s: s.window(MINUTE).collect_lists(["origin"])),
    "interval join": (
        KEYED.interval_join(KEYED),
        lambda s: s.between("0 s", "1 s").select(["origin"]),
    ),
    "temporal join": (KEYED.temporal_join(KEYED), lambda s: s.select(["origin"], ["origin"])),
}


@pytest.mark.parametrize("name", VERBS)
def test_verbs_return_results_or_all_outputs(name: str) -> None:
    """`with_outputs` may come at any step that has verbs, or whose next one has."""
    step, verb = VERBS[name]
    assert isinstance(verb(step), pa.Table)
    outputs = verb(step.with_outputs())
    assert isinstance(outputs, gw.typing.Outputs)
    assert outputs.result().schema == verb(step).schema


STEPS: dict[str, Any] = {
    "stream": BEGUN,
    "timed": TIMED,
    "broadcast": KEYED.connect(TIMED.broadcast()),
    "connected": KEYED.connect(KEYED),
    "windows of a join": KEYED.join(KEYED).window(MINUTE),
    "windows of a co-group": KEYED.co_group(KEYED).window(MINUTE),
    "near in time": KEYED.interval_join(KEYED).between("0 s", "1 s"),
    **{name: step for name, (step, _) in VERBS.items()},
}


@pytest.mark.parametrize("name", STEPS)
def test_completion_shows_calls_and_no_more_than_fifteen(name: str) -> None:
    step = STEPS[name]
    shown = [each for each in dir(step) if not each.startswith("_")]
    assert 0 < len(shown) <= 15, shown
    assert all(inspect.ismethod(getattr(step, each)) for each in shown)
    assert ("with_outputs" in shown) == (name not in ("stream", "timed"))


@pytest.mark.parametrize(
    ("how", "same"),
    [
        ("outer", "full"),
        ("full_outer", "full"),
        ("fullouter", "full"),
        ("left_outer", "left"),
        ("LeftOuter", "left"),
        ("right_outer", "right"),
        ("left_semi", "semi"),
        ("leftanti", "anti"),
    ],
)
def test_join_types_have_the_names_of_spark_too(how: str, same: Any) -> None:
    pairs = KEYED.interval_join(KEYED).between("0 s", "1 s")
    found, wanted = (
        pairs.with_outputs().select(
            ["origin"], [] if same in ("semi", "anti") else ["origin"], how=each
        )
        for each in (how, same)
    )
    assert found.plan.query == wanted.plan.query
    with pytest.raises(
        InvalidOptionError, match=r"inner, left, right, full, semi, anti, got 'cross'"
    ):
        pairs.select(["origin"], ["origin"], how="cross")


@pytest.mark.parametrize(
    ("step", "name", "hint"),
    [
        (WINDOWED, "agregate", ": did you mean aggregate"),
        (BEGUN, "keyby", ": did you mean key_by"),
        (KEYED, "agregate", ": did you mean aggregate, after .window(assigner)"),
        (WINDOWED, "nothing_like_it", ""),
    ],
)
def test_a_name_that_is_like_another(step: Any, name: str, hint: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(step, name)
    assert str(caught.value).endswith(f"has no attribute '{name}'{hint}")


@pytest.mark.parametrize(
    ("step", "name", "text"),
    [
        (WINDOWED, "sum", "say .aggregate(result=gw.sum('column')) for .sum"),
        (WINDOWED, "count", "say .aggregate(n=gw.count()) for .count"),
        (BEGUN, "filter", "say .where for .filter"),
        (BEGUN, "withColumn", "say .with_columns for .withColumn"),
    ],
)
def test_methods_of_others(step: Any, name: str, text: str) -> None:
    with pytest.raises(MissingStepError, match=re.escape(text)):
        getattr(step, name)
