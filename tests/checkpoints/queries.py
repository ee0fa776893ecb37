"""Queries whose state is of every kind that operators keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa

import gpu_windows as gw
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import ARRIVAL, Plan
from gpu_windows.planning.planner import plan

SECOND = 1_000_000
INSTANT = pa.timestamp("us", "UTC")
NO_ROWS = pa.schema([("k", pa.string()), ("ts", INSTANT), ("v", pa.int64())]).empty_table()


class Totals(gw.functions.ProcessWindowFunction):
    """The rows of a window, and those of all windows of its key before."""

    key_state: Mapping[str, pa.DataType] = {"rows": pa.int64()}

    def process(
        self, key: Mapping[str, Any], context: gw.typing.ProcessContext, rows: pa.Table
    ) -> list[dict[str, object]]:
        before = context.key_state.get("rows", 0)
        context.key_state.put("rows", before + rows.num_rows)
        return [{"rows": rows.num_rows, "before": before}]


class SomeTimeAfter(gw.functions.Trigger):
    """Fires two milliseconds after every row, at every third one, and at the window's end."""

    uses_processing_time = True
    state: Mapping[str, pa.DataType] = {"rows": pa.int64()}

    def on_element(
        self, row: Mapping[str, Any], timestamp: int, window: Any, context: gw.typing.TriggerContext
    ) -> gw.functions.TriggerResult:
        context.register_event_time_timer(window.max_timestamp)
        context.register_processing_time_timer(context.current_processing_time + 2_000)
        count = context.get("rows", 0) + 1
        context.put("rows", count)
        return gw.functions.TriggerResult.CONTINUE if count % 3 else gw.functions.TriggerResult.FIRE

    def on_event_time(
        self, time: int, window: Any, context: gw.typing.TriggerContext
    ) -> gw.functions.TriggerResult:
        return gw.functions.TriggerResult.FIRE

    def on_processing_time(
        self, time: int, window: Any, context: gw.typing.TriggerContext
    ) -> gw.functions.TriggerResult:
        return gw.functions.TriggerResult.FIRE

    def clear(self, window: Any, context: gw.typing.TriggerContext) -> None:
        context.remove("rows")


SHORT = gw.functions.StateTtlConfig.of("4 ms")


class Sums(gw.functions.KeyedProcessFunction):
    """The sum of the values of a key, and some of them, which expire."""

    output = pa.schema([("sum", pa.int64()), ("last", pa.list_(pa.int64())), ("by", pa.string())])
    state: ClassVar = {
        "sum": gw.functions.ReducingStateDescriptor(int.__add__, pa.int64()),
        "last": gw.functions.ListStateDescriptor(pa.int64(), ttl=SHORT),
        "by": gw.functions.MapStateDescriptor(pa.int64(), pa.string(), ttl=SHORT),
        "timer": gw.functions.ValueStateDescriptor(pa.int64()),
    }
    uses_processing_time = True

    def process_element(self, row: Mapping[str, Any], context: Any) -> None:
        value = row["v"] or 0
        context.state("sum").add(value)
        context.state("last").add(value)
        context.state("by").put(value % 4, str(value))
        if context.state("timer").value() is None:
            context.state("timer").update(context.timestamp + 40 * SECOND)
            context.register_event_time_timer(context.timestamp + 40 * SECOND)
        context.register_processing_time_timer(context.current_processing_time + 3_000)

    def on_timer(self, time: int, context: Any) -> list[dict[str, Any]]:
        if context.time_domain == "event_time":
            context.state("timer").clear()
        by = dict(context.state("by").items())
        last = context.state("last").get()
        return [{"sum": context.state("sum").get(), "last": last, "by": str(by)}]


class Rates(gw.functions.KeyedCoProcessFunction):
    """Left rows meet the last right one."""

    output = pa.schema([("v", pa.int64()), ("rate", pa.int64())])
    state: ClassVar = {"rate": gw.functions.ValueStateDescriptor(pa.int64())}

    def process_element1(self, row: Mapping[str, Any], context: Any) -> list[dict[str, Any]]:
        return [{"v": row["v"], "rate": context.state("rate").value()}]

    def process_element2(self, row: Mapping[str, Any], context: Any) -> None:
        context.state("rate").update(row["v"])


class Rules(gw.functions.KeyedBroadcastProcessFunction):
    """Rows of the keyed side meet all values that were broadcast, by their remainder."""

    output = pa.schema([("v", pa.int64()), ("known", pa.string())])
    broadcast_state: ClassVar = {"known": gw.functions.MapStateDescriptor(pa.int64(), pa.int64())}
    state: ClassVar = {"rows": gw.functions.ValueStateDescriptor(pa.int64())}

    def process_element(self, row: Mapping[str, Any], context: Any) -> list[dict[str, Any]]:
        rows = context.state("rows")
        rows.update(rows.value(0) + 1)
        known = dict(context.broadcast_state("known").items())
        return [{"v": rows.value(), "known": str(known)}]

    def process_broadcast_element(self, row: Mapping[str, Any], context: Any) -> None:
        context.broadcast_state("known").put(row["v"] % 11, row["v"])


def keyed(rows: pa.Table = NO_ROWS) -> gw.typing.KeyedStream:
    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    return gw.stream(rows).event_time("ts", watermarks).key_by("k")


def small() -> gw.typing.BroadcastStream:
    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    return gw.stream(NO_ROWS).event_time("ts", watermarks).broadcast()


def aggregates(windowed: Any) -> gw.typing.Outputs:
    made: gw.typing.Outputs = windowed.with_outputs().aggregate(
        n=gw.count(), total=gw.sum("v"), mean=gw.mean("v"), spread=gw.stddev("v"), top=gw.max("v")
    )
    return made


def user_state() -> gw.typing.Outputs:
    output = pa.schema([("rows", pa.int64()), ("before", pa.int64())])
    windowed = keyed().window(gw.TumblingEventTimeWindows.of("10 s"))
    return windowed.with_outputs().process(Totals(), ("v",), output=output)


QUERIES: dict[str, Callable[[], gw.typing.Outputs]] = {
    "tumbling": lambda: aggregates(keyed().window(gw.TumblingEventTimeWindows.of("20 s"))),
    "sliding": lambda: aggregates(keyed().window(gw.SlidingEventTimeWindows.of("30 s", "7 s"))),
    "sessions": lambda: aggregates(
        keyed().window(gw.EventTimeSessionWindows.with_gap("9 s")).allowed_lateness("5 s")
    ),
    "evictor": lambda: aggregates(
        keyed().window(gw.TumblingEventTimeWindows.of("50 s")).evictor(gw.CountEvictor.of(4))
    ),
    "sessions that collect": lambda: (
        keyed()
        .window(gw.EventTimeSessionWindows.with_gap("9 s"))
        .allowed_lateness("5 s")
        .with_outputs()
        .collect_lists("v")
    ),
    "sessions that count": lambda: aggregates(
        keyed().window(gw.EventTimeSessionWindows.with_gap("9 s")).trigger(gw.CountTrigger.of(3))
    ),
    "sketches": lambda: (
        keyed()
        .window(gw.EventTimeSessionWindows.with_gap("9 s"))
        .with_outputs()
        .aggregate(distinct=gw.approx_count_distinct("v"), half=gw.approx_quantile("v", 0.5))
    ),
    "picks": lambda: (
        keyed()
        .window(gw.EventTimeSessionWindows.with_gap("9 s"))
        .with_outputs()
        .aggregate(first=gw.first("v"), most=gw.arg_max("k", "v"))
    ),
    "collect": lambda: (
        keyed()
        .window(gw.SlidingEventTimeWindows.of("30 s", "10 s"))
        .with_outputs()
        .collect_lists("v")
    ),
    "window join": lambda: (
        keyed()
        .join(keyed())
        .window(gw.TumblingEventTimeWindows.of("20 s"))
        .with_outputs()
        .select(["v"], ["v"], how="full")
    ),
    "count": lambda: aggregates(keyed().count_window(4)),
    "count, sliding": lambda: (
        keyed()
        .count_window(5, 2)
        .with_outputs()
        .aggregate(n=gw.count(), top=gw.max("v"), last=gw.last("v"))
    ),
    "interval join": lambda: (
        keyed()
        .interval_join(keyed())
        .between("-5 s", "5 s")
        .with_outputs()
        .select(["v"], ["v"], how="full")
    ),
    "temporal join": lambda: (
        keyed()
        .temporal_join(keyed())
        .valid_for("40 s")
        .with_outputs()
        .select(["v"], ["v"], how="left")
    ),
    "over": lambda: (
        keyed()
        .over(gw.Range("9 s"))
        .with_outputs()
        .aggregate(["v"], n=gw.count(), total=gw.sum("v"), first=gw.first("v"))
    ),
    "over from the first row on": lambda: (
        keyed()
        .over(gw.Range())
        .with_outputs()
        .aggregate(["v"], total=gw.sum("v"), rank=gw.rank(), most=gw.max("v").over(gw.Rows(3)))
    ),
    "match": lambda: (
        keyed()
        .match_recognize("A B+? C", {"B": "SUM(B.v) < 900", "C": "C.v < LAST(B.v)"}, within="60 s")
        .then_by("v")
        .with_outputs()
        .measures(a="A.v", n="COUNT(B.v)", total="SUM(v)", t="MATCH_ROWTIME()")
    ),
    "top": lambda: keyed().with_outputs().top(3, "v", time_to_live="1 ms"),
    "process function": lambda: (
        keyed().with_outputs().process(Sums(), ["v"], output=Sums.output, arrival_order=["v"])
    ),
    "connected streams": lambda: (
        keyed().connect(keyed()).with_outputs().process(Rates(), ["v"], ["v"], output=Rates.output)
    ),
    "broadcast": lambda: (
        keyed().connect(small()).with_outputs().process(Rules(), ["v"], ["v"], output=Rules.output)
    ),
    "timeout": lambda: aggregates(keyed().window(gw.TumblingEventTimeWindows.of("20 s"))),
    "user state": user_state,
    "user trigger": lambda: aggregates(keyed().window(gw.TumblingEventTimeWindows.of("50 s"))),
}


#: Triggers that tables, whose input ends, do not take.
UNBOUNDED: dict[str, gw.functions.Trigger] = {
    "timeout": gw.ProcessingTimeoutTrigger.of(gw.CountTrigger.of(5), "3 ms"),
    "user trigger": SomeTimeAfter(),
}


def plan_query(name: str) -> Plan:
    """Return the plan of a query, by its name among `QUERIES`, on a stream."""
    query = QUERIES[name]().plan.query
    if name in UNBOUNDED:
        assert isinstance(query, WindowQuery)
        query = replace(query, trigger=UNBOUNDED[name])
    return plan(query, bounded=False, spark=True)


_LEFT, _RIGHT = ("left_v", "__left_v", "__keyed_v"), ("right_v", "__right_v", "__broadcast_v")


def rows(made: Plan, numbers: range) -> pa.Table:
    """Return rows of seven keys, some of them up to 16 seconds late, as operators take them."""
    time = made.query.time
    values: dict[str, list[Any]] = {
        "k": [f"key {i * 5 % 7}" for i in numbers],
        time: [(i + (i % 3) * (i * 7 % 9)) * SECOND for i in numbers],
        "v": [None if i % 11 == 0 else i % 13 for i in numbers],
        "is_left": [i % 2 == 0 for i in numbers],
        **{name: [i if i % 2 == 0 else None for i in numbers] for name in _LEFT},
        **{name: [None if i % 2 == 0 else i for i in numbers] for name in _RIGHT},
        "__copy": [False for _ in numbers],
        ARRIVAL: [*numbers],
    }
    dtypes = {field.name: field.type for field in made.query.schema} | {
        time: pa.int64(),
        ARRIVAL: pa.int64(),
    }
    names = [*made.input_columns, *(name for name in made.order if name == ARRIVAL)]
    return pa.table({name: pa.array(values[name], dtypes[name]) for name in names})
