"""Parts of the user's own give the same on every runner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors
from tests.datastream.custom_parts import (
    COMPILED,
    QUERIES,
    SECOND,
    WATERMARKS,
    FirstAndEveryHundred,
    Longest,
    outputs,
    rows,
    table,
    windowed,
)
from tests.lanes import quick
from tests.planning.queries import counters_of


@pytest.mark.spark
@pytest.mark.parametrize("name", quick(QUERIES, "trigger", "aggregate", "vectorised"))
def test_spark_gives_what_the_local_runner_gives(name: str, spark: Any) -> None:
    local = outputs(table(), name)
    distributed = outputs(spark.createDataFrame(table()), name)
    assert f"strategy  {COMPILED.get(name, 'row at a time')}" in local.explain()
    assert rows(distributed.result().toArrow()) == rows(local.result())
    assert counters_of(distributed.metrics()) == counters_of(local.metrics())


def test_a_trigger_and_its_counter() -> None:
    made = outputs(table(), "trigger")
    found = made.result().to_pylist()
    assert {(row["key"], row["timing"], row["firing"]) for row in found} >= {
        ("a", "early", 0),
        ("a", "on_time", 1),
        ("b", "on_time", 0),
    }
    early = [row for row in found if row["timing"] == "early"]
    assert dict(made.metrics()["user"][0].as_py()) == {"alarms": len(early)}


def test_an_evictor() -> None:
    counts = outputs(table(), "evictor").result()
    plain = gw.stream(table()).event_time("ts", WATERMARKS).key_by("key")
    whole = plain.window(gw.TumblingEventTimeWindows.of("1 minute")).aggregate(
        n=gw.count(), top=gw.max("value")
    )
    assert pa.compute.subtract(whole["n"], counts["n"]).to_pylist() == [2, 2, 2, 2, 1, 1]
    assert counts["top"].to_pylist()[:4] != whole["top"].to_pylist()[:4]
    assert counts["top"].to_pylist()[4:] == [None, None]  # the function is called on nothing


@pytest.mark.parametrize("name", COMPILED)
def test_the_reference_gives_what_kernels_give(name: str) -> None:
    assigner, build = QUERIES[name]
    windowed = gw.stream(table()).event_time("ts", WATERMARKS).key_by("key").window(assigner)
    reference = build(windowed.options(engine="reference"))
    assert "row at a time" in reference.explain()
    compiled = outputs(table(), name)
    assert rows(reference.result()) == rows(compiled.result())
    assert counters_of(reference.metrics()) == counters_of(compiled.metrics())


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (lambda n: pa.table({"other": [1.0] * n}), "must return the columns median, got other"),
        (lambda n: pa.table({"median": [1.0]}), "a row for each of"),
        (lambda n: pa.table({"median": ["x"] * n}), "declared types"),
        (lambda n: (pa.table({"median": [1.0, 2.0]}), [1, 0]), "ascending places"),
        (lambda n: (pa.table({"median": [1.0]}), [n]), "ascending places"),
    ],
)
def test_what_a_vectorised_function_returns_is_checked(found: Any, text: str) -> None:
    class Wrong(gw.functions.VectorWindowFunction):
        def process(self, batch: gw.typing.WindowBatch) -> Any:
            return found(len(batch))

    made = windowed(gw.TumblingEventTimeWindows.of("20 seconds"))
    with pytest.raises(errors.InvalidFunctionError, match=text):
        made.process(Wrong(), ["value"], output=pa.schema([("median", pa.float64())]))


def test_a_vectorised_function_is_not_called_with_no_window() -> None:
    sizes = []

    class Sizes(gw.functions.VectorWindowFunction):
        def process(self, batch: gw.typing.WindowBatch) -> pa.Table:
            sizes.append(len(batch))
            return pa.table({"n": np.diff(batch.offsets)})

    made = windowed(gw.TumblingEventTimeWindows.of("20 seconds"))
    whole = made.process(Sizes(), ["value"], output=pa.schema([("n", pa.int64())]))
    assert sum(sizes) == len(whole)
    sizes.clear()
    nothing = gw.stream(table().slice(0, 0)).event_time("ts", WATERMARKS).key_by("key")
    none = nothing.window(gw.TumblingEventTimeWindows.of("20 seconds")).process(
        Sizes(), ["value"], output=pa.schema([("n", pa.int64())])
    )
    assert len(none) == 0
    assert sizes == []


def test_sessions_that_are_cut() -> None:
    found = outputs(table(), "merging assigner").result()
    widths = pa.compute.subtract(
        found["window_end"].cast(pa.int64()), found["window_start"].cast(pa.int64())
    )
    assert pa.compute.max(widths).as_py() <= 40 * SECOND
    assert pa.compute.sum(found["n"]).as_py() == len(table())


def test_a_process_function_keeps_state_of_a_key() -> None:
    windowed = gw.stream(table()).event_time("ts", WATERMARKS).key_by("key")
    found = windowed.window(gw.TumblingEventTimeWindows.of("1 minute")).process(
        Longest(),
        ["ts"],
        output=pa.schema([("pause", pa.float64()), ("rows", pa.int64()), ("before", pa.int64())]),
    )
    of_a = [row["before"] for row in found.to_pylist() if row["key"] == "a"]
    assert of_a == list(range(len(of_a)))
    assert set(found["pause"].to_pylist()) == {14.0, 21.0}


def test_aggregates_and_a_process_function() -> None:
    class Describe(gw.functions.ProcessWindowFunction):
        def process(
            self, key: Mapping[str, Any], context: gw.typing.ProcessContext, rows: Any
        ) -> list[dict[str, object]]:
            return [{"text": f"{key['key']}: {rows['n'][0]} of {context.window.start}"}]  # type: ignore[attr-defined]

    windowed = gw.stream(table()).event_time("ts", WATERMARKS).key_by("key")
    found = windowed.window(gw.TumblingEventTimeWindows.of("1 minute")).process(
        Describe(),
        output=pa.schema([("text", pa.string())]),
        rows="pandas",
        aggregates={"n": gw.count()},
    )
    assert found["text"].to_pylist()[:2] == ["b: 3 of 0", "a: 6 of 0"]


def test_early_and_late_firings() -> None:
    trigger = gw.EarlyAndLateTrigger.of(early=gw.CountTrigger.of(2))
    windowed = gw.stream(table()).event_time("ts", WATERMARKS).key_by("key")
    found = (
        windowed.window(gw.TumblingEventTimeWindows.of("1 minute"))
        .trigger(trigger)
        .with_firing_columns()
        .aggregate(n=gw.count())
    )
    counts = [(row["n"], row["timing"]) for row in found.to_pylist() if row["key"] == "b"]
    assert (2, "early") in counts
    assert (3, "on_time") in counts


def test_state_must_be_declared_and_of_its_type() -> None:
    class Undeclared(FirstAndEveryHundred):
        state: ClassVar = {}

    class WrongType(FirstAndEveryHundred):
        state: ClassVar = {"fired": pa.date32()}

    for trigger, text in ((Undeclared(9.0), "must declare"), (WrongType(9.0), "date32")):
        made = windowed(gw.TumblingEventTimeWindows.of("1 minute")).trigger(trigger)
        with pytest.raises(errors.InvalidFunctionError, match=text):
            made.aggregate(n=gw.count())


class Counted(gw.functions.ProcessWindowFunction):
    """Counts the rows that it sees, and tells their columns."""

    def process(self, key: Any, context: Any, rows: Any) -> Any:
        """Return one row."""
        yield {"n": rows.num_rows, "seen": rows.column_names}


def test_a_function_sees_all_columns_if_none_are_given() -> None:
    times = pa.array([1, 2, 3, 4, 5, 8, 9, 15], pa.timestamp("ms", "UTC"))
    stream = gw.stream(pa.table({"w": ["hi"] * 8, "t": times}))
    keyed = stream.event_time("t", gw.WatermarkStrategy.for_monotonous_timestamps()).key_by("w")
    windows = keyed.window(gw.TumblingEventTimeWindows.of("5 ms"))
    found = windows.process(Counted(), output="n BIGINT, seen ARRAY<STRING>")
    assert found["n"].to_pylist() == [4, 3, 1]  # as in PyFlink's own test
    assert found["seen"].to_pylist() == [["t"]] * 3
    keys = gw.stream(pa.table({"w": ["hi"] * 2})).key_by("w").count_window(2)
    assert keys.process(Counted(), output="n BIGINT, seen ARRAY<STRING>")["n"].to_pylist() == [2]
    with pytest.raises(gw.errors.QueryError, match="at least one column of their rows"):
        windows.process(Counted(), [], output="n BIGINT, seen ARRAY<STRING>")
