"""Parts of the user's own, as the documentation shows them: same result on every runner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.windows import AssignerContext, Window
from tests.queries import counters_of

SECOND = 1_000_000
WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()


# ---- begin of the examples (docs/windows.md shows them)


class FirstAndEveryHundred(gw.Trigger):
    """Fires at the first row above a limit, and at the window's end."""

    state: ClassVar = {"fired": pa.bool_()}
    columns: ClassVar = ("value",)

    def __init__(self, limit: float) -> None:
        self.limit = limit

    def on_element(
        self, row: Mapping[str, Any], timestamp: int, window: Any, context: gw.TriggerContext
    ) -> gw.TriggerResult:
        context.register_event_time_timer(window.max_timestamp)
        if row["value"] <= self.limit or context.get("fired", False):
            return gw.TriggerResult.CONTINUE
        context.put("fired", True)
        context.count("alarms")
        return gw.TriggerResult.FIRE

    def on_event_time(self, time: int, window: Any, context: gw.TriggerContext) -> gw.TriggerResult:
        ended = time == window.max_timestamp
        return gw.TriggerResult.FIRE if ended else gw.TriggerResult.CONTINUE

    def clear(self, window: Any, context: gw.TriggerContext) -> None:
        context.remove("fired")
        context.delete_event_time_timer(window.max_timestamp)


class WithoutOutliers(gw.Evictor):
    """Drops the smallest and the largest value before the function is called."""

    columns: ClassVar = ("value",)

    def evict_before(
        self, elements: Sequence[gw.Element], window: Any, context: Any
    ) -> Sequence[gw.Element]:
        ranked = sorted(elements, key=lambda element: float(element.row["value"]))  # type: ignore[arg-type]
        inner = {element.place for element in ranked[1:-1]}
        return [element for element in elements if element.place in inner]


class ByShift(gw.WindowAssigner):
    """Shifts of a working day: 6 to 14, 14 to 22 and 22 to 6 o'clock."""

    def assign_windows(
        self, row: Mapping[str, Any], timestamp: int, context: AssignerContext
    ) -> Sequence[Window]:
        hour = 3_600 * SECOND
        begin = (timestamp - 6 * hour) // (8 * hour) * 8 * hour + 6 * hour
        return [gw.TimeWindow(begin, begin + 8 * hour)]


class SessionsUpTo(gw.MergingWindowAssigner):
    """Sessions that are cut where they would last longer than a limit."""

    def __init__(self, gap: int, limit: int) -> None:
        self.gap, self.limit = gap, limit

    def assign_windows(
        self, row: Mapping[str, Any], timestamp: int, context: AssignerContext
    ) -> Sequence[Window]:
        return [gw.TimeWindow(timestamp, timestamp + self.gap)]

    def merge_windows(
        self, windows: Sequence[gw.TimeWindow]
    ) -> list[tuple[gw.TimeWindow, list[gw.TimeWindow]]]:
        merged = super().merge_windows(windows)
        return [(w, parts) for w, parts in merged if w.end - w.start <= self.limit]


class GeometricMean(gw.AggregateFunction):
    """The n-th root of the product."""

    accumulator = pa.struct([("product", pa.float64()), ("count", pa.int64())])
    result = pa.float64()

    def create_accumulator(self) -> dict[str, Any]:
        return {"product": 1.0, "count": 0}

    def add(self, row: Mapping[str, Any], accumulator: dict[str, Any]) -> dict[str, Any]:
        product = accumulator["product"] * row["value"]
        return {"product": product, "count": accumulator["count"] + 1}

    def get_result(self, accumulator: dict[str, Any]) -> float:
        root: float = accumulator["product"] ** (1 / accumulator["count"])
        return root

    def merge(self, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        return {name: left[name] * right[name] if name == "product" else left[name] + right[name]
                for name in left}  # fmt: skip


class Longest(gw.ProcessWindowFunction):
    """The row after the longest pause in a window, and how many windows of the key came before."""

    key_state: ClassVar = {"windows": pa.int64()}

    def process(
        self, key: Mapping[str, Any], context: gw.ProcessContext, rows: pa.Table
    ) -> Iterator[dict[str, object]]:
        before = context.key_state.get("windows", 0)
        context.key_state.put("windows", before + 1)
        times = [time.timestamp() for time in rows["ts"].to_pylist()]
        pauses = [b - a for a, b in pairwise(times)]
        if pauses:
            yield {"pause": max(pauses), "rows": rows.num_rows, "before": before}


class Median(gw.VectorWindowFunction):
    """The median of a column, of many windows at once."""

    def process(self, batch: gw.WindowBatch) -> pa.Table:
        values = batch.rows["value"].to_numpy()
        ranked = values[np.lexsort((values, batch.places))]  # by window, then by value
        first, last = batch.offsets[:-1], batch.offsets[1:] - 1
        middle = (ranked[(first + last) // 2] + ranked[(first + last + 1) // 2]) / 2
        return pa.table({"median": middle})


class Jumps(gw.VectorWindowFunction):
    """Every value that is more than 2 above the one before it in its window."""

    def process(self, batch: gw.WindowBatch) -> tuple[pa.Table, NDArray[np.int64]]:
        values, places = batch.rows["value"].to_numpy(), batch.places
        jumps = np.flatnonzero((np.diff(values) > 2) & (np.diff(places) == 0)) + 1
        return pa.table({"jump": values[jumps]}), places[jumps]


# ---- end of the examples


def table() -> pa.Table:
    """Two keys, a row every 7 seconds, values that rise and fall."""
    seconds = range(0, 140, 7)
    return pa.table(
        {
            "key": ["a" if i % 3 else "b" for i in range(len(seconds))],
            "ts": pa.array([s * SECOND for s in seconds]).cast(pa.timestamp("us", "UTC")),
            "value": [float((i * 13) % 11 + 1) for i in range(len(seconds))],
            "gap": pa.array([(i % 4 + 1) * 10 * SECOND for i in range(len(seconds))]),
        }
    )


Build = Any

QUERIES: dict[str, tuple[Any, Build]] = {
    "trigger": (
        gw.TumblingEventTimeWindows.of("1 minute"),
        lambda w: w.trigger(FirstAndEveryHundred(9.0)).with_firing_columns().outputs(n=gw.count()),
    ),
    "evictor": (
        gw.TumblingEventTimeWindows.of("1 minute"),
        lambda w: w.evictor(WithoutOutliers()).outputs(top=gw.max("value"), n=gw.count()),
    ),
    "assigner": (ByShift(), lambda w: w.outputs(n=gw.count())),
    "merging assigner": (
        SessionsUpTo(15 * SECOND, 40 * SECOND),
        lambda w: w.outputs(n=gw.count(), total=gw.sum("value")),
    ),
    "aggregate": (
        gw.EventTimeSessionWindows.with_gap("10 seconds"),
        lambda w: w.outputs(mean=gw.user_aggregate(GeometricMean(), "value"), n=gw.count()),
    ),
    "dynamic gap": (
        gw.EventTimeSessionWindows.with_dynamic_gap("gap"),
        lambda w: w.outputs(n=gw.count(), first=gw.first("value")),
    ),
    "delta of a user": (
        gw.GlobalWindows.create(),
        lambda w: w.trigger(
            gw.DeltaTrigger.of(3, gw.Delta.of("value", lambda old, new: abs(old - new)))
        ).outputs(n=gw.count()),
    ),
    "vectorised": (
        gw.SlidingEventTimeWindows.of("1 minute", "20 seconds"),
        lambda w: w.outputs(
            gw.Vectorised(Median(), ("value",), pa.schema([("median", pa.float64())]))
        ),
    ),
    "vectorised, any number of rows": (
        gw.EventTimeSessionWindows.with_dynamic_gap("gap"),
        lambda w: w.with_firing_columns().outputs(
            gw.Vectorised(Jumps(), ("value",), pa.schema([("jump", pa.float64())]))
        ),
    ),
    "collect": (
        gw.TumblingEventTimeWindows.of("1 minute"),
        lambda w: w.evictor(gw.CountEvictor.of(2)).outputs(gw.Collect(("value", "gap"))),
    ),
}

#: Those that no user code sees single rows of.
COMPILED = {
    "dynamic gap": "buffer",
    "vectorised": "buffer",
    "vectorised, any number of rows": "buffer",
    "collect": "buffer",
}


def outputs(source: Any, name: str) -> gw.Outputs:
    assigner, build = QUERIES[name]
    windowed = gw.stream(source).event_time("ts", WATERMARKS).key_by("key").window(assigner)
    made: gw.Outputs = build(windowed.order_by("ts"))
    return made


def rows(found: pa.Table) -> list[tuple[Any, ...]]:
    names = [name for name in found.column_names if name not in ("window_start", "window_end")]
    bounds = [found[name].cast(pa.int64()).to_pylist() for name in ("window_start", "window_end")]
    values = [found[name].to_pylist() for name in names]
    return sorted(zip(*values, *bounds, strict=True), key=str)


@pytest.mark.spark
@pytest.mark.parametrize("name", QUERIES)
def test_spark_gives_what_the_local_runner_gives(name: str, spark: Any) -> None:
    local = outputs(table(), name)
    distributed = outputs(spark.createDataFrame(table()), name)
    assert f"strategy  {COMPILED.get(name, 'row at a time')}" in local.explain()
    assert rows(distributed.result().toArrow()) == rows(local.result())
    assert counters_of(distributed.metrics()) == counters_of(local.metrics())


def test_a_trigger_and_its_counter() -> None:
    made = outputs(table(), "trigger")
    found = made.result().to_pylist()
    assert {(row["key"], row["pane"], row["firing"]) for row in found} >= {
        ("a", "early", 0),
        ("a", "on_time", 1),
        ("b", "on_time", 0),
    }
    early = [row for row in found if row["pane"] == "early"]
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
    class Wrong(gw.VectorWindowFunction):
        def process(self, batch: gw.WindowBatch) -> Any:
            return found(len(batch))

    made = windowed(gw.TumblingEventTimeWindows.of("20 seconds"))
    with pytest.raises(errors.InvalidFunctionError, match=text):
        made.process(Wrong(), ["value"], output=pa.schema([("median", pa.float64())]))


def test_a_vectorised_function_is_not_called_with_no_window() -> None:
    sizes = []

    class Sizes(gw.VectorWindowFunction):
        def process(self, batch: gw.WindowBatch) -> pa.Table:
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
    class Describe(gw.ProcessWindowFunction):
        def process(
            self, key: Mapping[str, Any], context: gw.ProcessContext, rows: Any
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
    counts = [(row["n"], row["pane"]) for row in found.to_pylist() if row["key"] == "b"]
    assert (2, "early") in counts
    assert (3, "on_time") in counts


def windowed(assigner: gw.WindowAssigner) -> gw.WindowedStream:
    return gw.stream(table()).event_time("ts", WATERMARKS).key_by("key").window(assigner)


def test_state_must_be_declared_and_of_its_type() -> None:
    class Undeclared(FirstAndEveryHundred):
        state: ClassVar = {}

    class WrongType(FirstAndEveryHundred):
        state: ClassVar = {"fired": pa.date32()}

    for trigger, text in ((Undeclared(9.0), "must declare"), (WrongType(9.0), "date32")):
        made = windowed(gw.TumblingEventTimeWindows.of("1 minute")).trigger(trigger)
        with pytest.raises(errors.InvalidFunctionError, match=text):
            made.aggregate(n=gw.count())
