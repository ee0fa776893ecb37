"""Queries of every kind over times that clocks show, and over the same readings as instants of UTC.

Both must give the same ticks; what comes of event times must have their type.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

import gpu_windows as gw

NTZ, UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")
#: In this zone clocks show no time from 02:00 to 03:00 on 2024-03-31.
ZONE = "Europe/Zurich"
BEGIN = datetime(2024, 3, 31, 0, 30)
WATERMARKS = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
TUMBLING = gw.TumblingEventTimeWindows.of("7 minutes")
HOUR = gw.TumblingEventTimeWindows.of("1 hour")
MATCH = {"A": "A.v < 5", "B": "B.v >= 5"}


def clock_rows(count: int = 300, seed: int = 1, *, odd: bool = True) -> pa.Table:
    """Rows around the gap; ``odd``: with times of the years 1 and 9999, and one without a time."""
    rng = random.Random(seed)
    times: list[datetime | None] = [
        BEGIN + timedelta(seconds=rng.randrange(4 * 3600), microseconds=rng.randrange(10**6))
        for _ in range(count)
    ]
    if odd:
        times[5:8] = [
            datetime(1, 1, 1, 0, 0, 0, 1), None, datetime(9999, 12, 31, 23, 59, 59, 999_999)
        ]  # fmt: skip
    return pa.table(
        {
            "k": [rng.choice("abc") for _ in range(count)],
            "ts": pa.array(times, NTZ),
            "v": [rng.randrange(9) for _ in range(count)],
            "i": [*range(count)],
        }
    )


def as_instants(table: pa.Table) -> pa.Table:
    """Return rows with their readings as instants of UTC."""
    return table.set_column(1, "ts", table["ts"].cast(UTC))


def timed(source: Any) -> gw.typing.TimedStream:
    return gw.stream(source).event_time("ts", WATERMARKS)


class Timers(gw.functions.KeyedProcessFunction):
    """Gives the times of rows, and of timers a second later."""

    def process_element(self, row: Any, context: Any) -> Iterator[dict[str, Any]]:
        context.register_event_time_timer(context.timestamp + 1_000_000)
        yield {"t": row["ts"], "ticks": context.timestamp}

    def on_timer(self, time: int, context: Any) -> Iterator[dict[str, Any]]:
        del context
        yield {"t": None, "ticks": time}


class Bounds(gw.functions.ProcessWindowFunction):
    """Gives the bounds of windows in ticks, and their first time."""

    def process(self, key: Any, context: Any, rows: Any) -> list[dict[str, Any]]:
        del key
        return [{"first": min(rows["ts"].to_pylist()), "end": context.window.end}]


class OnSecond(gw.functions.Trigger):
    """Fires at the second row of a window, and at its end."""

    state: Mapping[str, pa.DataType] = {"rows": pa.int64()}

    def on_element(self, row: Any, timestamp: int, window: Any, context: Any) -> Any:
        del row, timestamp
        context.register_event_time_timer(window.max_timestamp)
        context.put("rows", context.get("rows", 0) + 1)
        result = gw.functions.TriggerResult
        return result.FIRE if context.get("rows") == 2 else result.CONTINUE

    def on_event_time(self, time: int, window: Any, context: Any) -> Any:
        del context
        result = gw.functions.TriggerResult
        return result.FIRE if time == window.max_timestamp else result.CONTINUE

    def clear(self, window: Any, context: Any) -> None:
        context.remove("rows")
        context.delete_event_time_timer(window.max_timestamp)


def _keyed(source: Any) -> gw.typing.KeyedStream:
    return timed(source).key_by("k")


def _windowed(source: Any, assigner: Any = TUMBLING) -> gw.typing.WindowedStream:
    return _keyed(source).window(assigner)


def _type_of(source: Any) -> pa.DataType:
    stream = timed(source)
    return stream.source.schema.field(stream.time).type


def _chain(source: Any) -> gw.typing.Outputs:
    minutes = _windowed(source).with_outputs().aggregate(n=gw.count())
    hours = gw.stream_results(minutes).key_by("k").window(HOUR)
    return hours.with_outputs().aggregate(n=gw.max("n"), t=gw.min("window_end"))


def _process(source: Any) -> gw.typing.Outputs:
    output = pa.schema([("t", _type_of(source)), ("ticks", pa.int64())])
    return _keyed(source).with_outputs().process(Timers(), ["ts"], output=output)


def _bounds(source: Any) -> gw.typing.Outputs:
    output = pa.schema([("first", _type_of(source)), ("end", pa.int64())])
    return _windowed(source).with_outputs().process(Bounds(), ["ts"], output=output)


def _match(source: Any) -> gw.typing.Outputs:
    pattern = _keyed(source).match_recognize("A B", MATCH, within="10 minutes").arrival_order("i")
    return pattern.with_outputs().measures(a="A.ts", b="LAST(B.ts)", n="A.i")


def _pairs(source: Any) -> gw.typing.Outputs:
    between = _keyed(source).interval_join(_keyed(source)).between("-5 seconds", "5 seconds")
    return between.with_outputs().select({"i": "i", "t": "ts"}, {"j": "i"})


def _versions(source: Any) -> gw.typing.Outputs:
    right = timed(source).where("v < 3").key_by("k")
    joined = _keyed(source).temporal_join(right)
    return joined.with_outputs().select({"i": "i", "t": "ts"}, {"j": "i", "u": "ts"})


def _joined(source: Any) -> gw.typing.Outputs:
    both = _keyed(source).join(_keyed(source)).window(TUMBLING)
    return both.with_outputs().select({"i": "i", "t": "ts"}, {"j": "i"})


def _grouped(source: Any) -> gw.typing.Outputs:
    both = _keyed(source).co_group(_keyed(source)).window(TUMBLING)
    return both.with_outputs().aggregate(left={"t": gw.max("ts")}, right={"n": gw.count()})


QUERIES: Mapping[str, Callable[[Any], gw.typing.Outputs]] = {
    "tumbling": lambda s: (
        _windowed(s)
        .with_outputs()
        .aggregate(n=gw.count(), last=gw.max("ts"), first=gw.min("ts"), v=gw.sum("v"))
    ),
    "sliding": lambda s: (
        _windowed(s, gw.SlidingEventTimeWindows.of("1 hour", "7 minutes"))
        .with_outputs()
        .aggregate(n=gw.count(), a=gw.mean("v"))
    ),
    "sessions": lambda s: (
        _windowed(s, gw.EventTimeSessionWindows.with_gap("40 seconds"))
        .arrival_order("i")
        .with_outputs()
        .aggregate(n=gw.count(), first=gw.min("ts"), t=gw.first("ts"))
    ),
    "every row": lambda s: (
        timed(s)
        .window_all(TUMBLING)
        .with_outputs()
        .aggregate(n=gw.count(), t=gw.arg_max("ts", "i"))
    ),
    "by the time": lambda s: (
        timed(s).key_by("ts").window(HOUR).with_outputs().aggregate(n=gw.count(), t=gw.max("ts"))
    ),
    "trigger": lambda s: (
        _windowed(s)
        .trigger(OnSecond())
        .arrival_order("i")
        .with_outputs()
        .aggregate(n=gw.count(), t=gw.max("ts"))
    ),
    "evictor": lambda s: (
        _windowed(s)
        .evictor(gw.TimeEvictor.of("1 minute"))
        .arrival_order("i")
        .with_outputs()
        .aggregate(n=gw.count(), t=gw.min("ts"))
    ),
    "continuous": lambda s: (
        _windowed(s)
        .trigger(gw.ContinuousEventTimeTrigger.of("2 minutes"))
        .arrival_order("i")
        .with_outputs()
        .aggregate(n=gw.count())
    ),
    "over": lambda s: (
        _keyed(s)
        .over()
        .arrival_order("i")
        .with_outputs()
        .aggregate(["i", "ts"], n=gw.count().over(gw.Range("10 minutes")), t=gw.lag("ts"))
    ),
    "top": lambda s: _windowed(s).with_outputs().top(2, "ts", columns=["i", "ts"]),
    "with windows": lambda s: timed(s).with_windows(TUMBLING, columns=["i", "ts"]),
    "interval join": _pairs,
    "temporal join": _versions,
    "window join": _joined,
    "co-group": _grouped,
    "union": lambda s: (
        timed(s).union(timed(s)).key_by("k").window(HOUR).with_outputs().aggregate(n=gw.count())
    ),
    "process": _process,
    "window function": _bounds,
    "pattern": _match,
    "stage": _chain,
}


def times_of(table: pa.Table) -> set[pa.DataType]:
    """Return the types of columns of times."""
    return {field.type for field in table.schema if pa.types.is_timestamp(field.type)}


def rows_in_ticks(table: pa.Table) -> list[str]:
    """Return rows, sorted, with their times as ticks."""
    columns = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for column in table.columns
    ]
    return sorted(map(repr, zip(*(each.to_pylist() for each in columns), strict=True)))
