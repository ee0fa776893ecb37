"""Parts of the user's own, as the documentation shows them, and a query with each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import gpu_windows as gw
from gpu_windows.vocabulary.windows import AssignerContext, Window

SECOND = 1_000_000
WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()


# ---- begin of the examples (docs/windows.md shows them)


class FirstAndEveryHundred(gw.functions.Trigger):
    """Fires at the first row above a limit, and at the window's end."""

    state: ClassVar = {"fired": pa.bool_()}
    columns: ClassVar = ("value",)

    def __init__(self, limit: float) -> None:
        self.limit = limit

    def on_element(
        self, row: Mapping[str, Any], timestamp: int, window: Any, context: gw.typing.TriggerContext
    ) -> gw.functions.TriggerResult:
        context.register_event_time_timer(window.max_timestamp)
        if row["value"] <= self.limit or context.get("fired", False):
            return gw.functions.TriggerResult.CONTINUE
        context.put("fired", True)
        context.count("alarms")
        return gw.functions.TriggerResult.FIRE

    def on_event_time(
        self, time: int, window: Any, context: gw.typing.TriggerContext
    ) -> gw.functions.TriggerResult:
        ended = time == window.max_timestamp
        return gw.functions.TriggerResult.FIRE if ended else gw.functions.TriggerResult.CONTINUE

    def clear(self, window: Any, context: gw.typing.TriggerContext) -> None:
        context.remove("fired")
        context.delete_event_time_timer(window.max_timestamp)


class WithoutOutliers(gw.functions.Evictor):
    """Drops the smallest and the largest value before the function is called."""

    columns: ClassVar = ("value",)

    def evict_before(
        self, elements: Sequence[gw.typing.Element], window: Any, context: Any
    ) -> Sequence[gw.typing.Element]:
        ranked = sorted(elements, key=lambda element: float(element.row["value"]))  # type: ignore[arg-type]
        inner = {element.place for element in ranked[1:-1]}
        return [element for element in elements if element.place in inner]


class ByShift(gw.functions.WindowAssigner):
    """Shifts of a working day: 6 to 14, 14 to 22 and 22 to 6 o'clock."""

    def assign_windows(
        self, row: Mapping[str, Any], timestamp: int, context: AssignerContext
    ) -> Sequence[Window]:
        hour = 3_600 * SECOND
        begin = (timestamp - 6 * hour) // (8 * hour) * 8 * hour + 6 * hour
        return [gw.typing.TimeWindow(begin, begin + 8 * hour)]


class SessionsUpTo(gw.functions.MergingWindowAssigner):
    """Sessions that are cut where they would last longer than a limit."""

    def __init__(self, gap: int, limit: int) -> None:
        self.gap, self.limit = gap, limit

    def assign_windows(
        self, row: Mapping[str, Any], timestamp: int, context: AssignerContext
    ) -> Sequence[Window]:
        return [gw.typing.TimeWindow(timestamp, timestamp + self.gap)]

    def merge_windows(
        self, windows: Sequence[gw.typing.TimeWindow]
    ) -> list[tuple[gw.typing.TimeWindow, list[gw.typing.TimeWindow]]]:
        merged = super().merge_windows(windows)
        return [(w, parts) for w, parts in merged if w.end - w.start <= self.limit]


class GeometricMean(gw.functions.AggregateFunction):
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


class Longest(gw.functions.ProcessWindowFunction):
    """The row after the longest pause in a window, and how many windows of the key came before."""

    key_state: ClassVar = {"windows": pa.int64()}

    def process(
        self, key: Mapping[str, Any], context: gw.typing.ProcessContext, rows: pa.Table
    ) -> Iterator[dict[str, object]]:
        before = context.key_state.get("windows", 0)
        context.key_state.put("windows", before + 1)
        times = [time.timestamp() for time in rows["ts"].to_pylist()]
        pauses = [b - a for a, b in pairwise(times)]
        if pauses:
            yield {"pause": max(pauses), "rows": rows.num_rows, "before": before}


class Median(gw.functions.VectorWindowFunction):
    """The median of a column, of many windows at once."""

    def process(self, batch: gw.typing.WindowBatch) -> pa.Table:
        values = batch.rows["value"].to_numpy()
        ranked = values[np.lexsort((values, batch.places))]  # by window, then by value
        first, last = batch.offsets[:-1], batch.offsets[1:] - 1
        middle = (ranked[(first + last) // 2] + ranked[(first + last + 1) // 2]) / 2
        return pa.table({"median": middle})


class Jumps(gw.functions.VectorWindowFunction):
    """Every value that is more than 2 above the one before it in its window."""

    def process(self, batch: gw.typing.WindowBatch) -> tuple[pa.Table, NDArray[np.int64]]:
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
        lambda w: (
            w.trigger(FirstAndEveryHundred(9.0))
            .with_firing_columns()
            .with_outputs()
            .aggregate(n=gw.count())
        ),
    ),
    "evictor": (
        gw.TumblingEventTimeWindows.of("1 minute"),
        lambda w: (
            w.evictor(WithoutOutliers()).with_outputs().aggregate(top=gw.max("value"), n=gw.count())
        ),
    ),
    "assigner": (ByShift(), lambda w: w.with_outputs().aggregate(n=gw.count())),
    "merging assigner": (
        SessionsUpTo(15 * SECOND, 40 * SECOND),
        lambda w: w.with_outputs().aggregate(n=gw.count(), total=gw.sum("value")),
    ),
    "aggregate": (
        gw.EventTimeSessionWindows.with_gap("10 seconds"),
        lambda w: w.with_outputs().aggregate(
            mean=gw.user_aggregate(GeometricMean(), "value"), n=gw.count()
        ),
    ),
    "dynamic gap": (
        gw.EventTimeSessionWindows.with_dynamic_gap("gap"),
        lambda w: w.with_outputs().aggregate(n=gw.count(), first=gw.first("value")),
    ),
    "delta of a user": (
        gw.GlobalWindows.create(),
        lambda w: (
            w.trigger(gw.DeltaTrigger.of(3, gw.Delta.of("value", lambda old, new: abs(old - new))))
            .with_outputs()
            .aggregate(n=gw.count())
        ),
    ),
    "vectorised": (
        gw.SlidingEventTimeWindows.of("1 minute", "20 seconds"),
        lambda w: w.with_outputs().process(
            Median(), ("value",), output=pa.schema([("median", pa.float64())])
        ),
    ),
    "vectorised, any number of rows": (
        gw.EventTimeSessionWindows.with_dynamic_gap("gap"),
        lambda w: (
            w.with_firing_columns()
            .with_outputs()
            .process(Jumps(), ("value",), output=pa.schema([("jump", pa.float64())]))
        ),
    ),
    "collect": (
        gw.TumblingEventTimeWindows.of("1 minute"),
        lambda w: w.evictor(gw.CountEvictor.of(2)).with_outputs().collect_lists("value", "gap"),
    ),
}
#: Those that no user code sees single rows of.
COMPILED = {
    "dynamic gap": "buffer",
    "vectorised": "buffer",
    "vectorised, any number of rows": "buffer",
    "collect": "buffer",
}


def outputs(source: Any, name: str) -> gw.typing.Outputs:
    assigner, build = QUERIES[name]
    windowed = gw.stream(source).event_time("ts", WATERMARKS).key_by("key").window(assigner)
    made: gw.typing.Outputs = build(windowed.arrival_order("ts"))
    return made


def rows(found: pa.Table) -> list[tuple[Any, ...]]:
    names = [name for name in found.column_names if name not in ("window_start", "window_end")]
    bounds = [found[name].cast(pa.int64()).to_pylist() for name in ("window_start", "window_end")]
    values = [found[name].to_pylist() for name in names]
    return sorted(zip(*values, *bounds, strict=True), key=str)


def windowed(assigner: gw.functions.WindowAssigner) -> gw.typing.WindowedStream:
    return gw.stream(table()).event_time("ts", WATERMARKS).key_by("key").window(assigner)
