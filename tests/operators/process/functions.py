"""Functions over single rows that tests run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pyarrow as pa

import gpu_windows as gw

LONG, TEXT = pa.int64(), pa.string()
SCHEMA = pa.schema([("k", TEXT), ("ts", LONG), ("v", LONG)])
Row = Mapping[str, Any]


class Last(gw.AggregateFunction):
    """How many values came, and the last one."""

    accumulator = pa.struct({"n": LONG, "last": LONG})
    result = TEXT

    def create_accumulator(self) -> dict[str, Any]:
        return {"n": 0, "last": None}

    def add(self, row: Any, accumulator: Any) -> dict[str, Any]:
        return {"n": accumulator["n"] + 1, "last": row}

    def get_result(self, accumulator: Any) -> str:
        return f"{accumulator['n']}:{accumulator['last']}"


def add(one: int, other: int) -> int:
    return one + other


def declared(ttl: gw.StateTtlConfig | None) -> dict[str, Any]:
    """State of every kind."""
    return {
        "value": gw.ValueStateDescriptor(LONG, ttl=ttl),
        "list": gw.ListStateDescriptor(LONG, ttl=ttl),
        "map": gw.MapStateDescriptor(TEXT, LONG, ttl=ttl),
        "sum": gw.ReducingStateDescriptor(add, LONG, ttl=ttl),
        "last": gw.AggregatingStateDescriptor(Last(), ttl=ttl),
    }


class Everything(gw.KeyedProcessFunction):
    """Keeps state of all kinds, sets and takes back timers of both times, has side outputs."""

    output = pa.schema([("what", TEXT), ("at", LONG), ("seen", TEXT)])
    side_outputs: ClassVar = {"odd": pa.schema([("v", LONG)]), "timers": pa.schema([("at", LONG)])}
    uses_processing_time = True

    def __init__(self, ttl: gw.StateTtlConfig | None = None) -> None:
        self._ttl = ttl

    @property
    def state(self) -> Mapping[str, gw.StateDescriptor]:
        return declared(self._ttl)

    def process_element(self, row: Row, context: Any) -> Iterator[Row]:
        v, at = row["v"], context.timestamp
        value, of_list, of_map = (context.state(name) for name in ("value", "list", "map"))
        if v is None:
            for name in ("value", "list", "map", "sum", "last")[:: 1 + at % 2]:
                context.state(name).clear()
            return
        value.update(v)
        of_list.add(v)
        of_map.put(f"m{v % 3}", v if v % 5 else None)
        context.state("sum").add(v)
        context.state("last").add(v)
        if v % 7 == 0:
            of_map.remove("m0")
            of_list.update([v, at])
        context.register_event_time_timer(at + v % 4 * 5)
        context.delete_event_time_timer(at + v % 3 * 5)
        context.register_processing_time_timer(context.current_processing_time + v % 6)
        if v % 2:
            context.output("odd", {"v": v})
            context.count("odd values", v)
        yield {"what": "row", "at": at, "seen": seen(context)}

    def on_timer(self, time: int, context: Any) -> Iterator[Row]:
        context.output("timers", {"at": time})
        if context.time_domain == "event_time" and time % 3 == 0 and time < 1 << 40:
            context.register_event_time_timer(time + 5)
            context.register_processing_time_timer(context.current_processing_time + 1)
        if time % 4 == 0:
            context.state("list").clear()
        yield {"what": context.time_domain, "at": time, "seen": seen(context)}


def seen(context: Any) -> str:
    """Return all that is kept, and the times."""
    of_map = context.state("map")
    kept = [
        context.state("value").value(),
        context.state("list").get(),
        dict(of_map.items()),
        of_map.get("m1"),
        of_map.contains("m2"),
        context.state("sum").get(),
        context.state("last").get(),
        context.current_watermark,
        context.current_processing_time,
        context.key["k"],
    ]
    return repr(kept)


def outputs(
    function: Any, table: pa.Table, *, columns: tuple[str, ...] = ("v",), **options: Any
) -> gw.Outputs:
    """Return the outputs of a function over a table with the columns of `SCHEMA`."""
    strategy = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(table).event_time("ts", strategy).key_by("k")
    return keyed.processed(function, columns, output=function.output, **options)


def table(*rows: tuple[str | None, int | None, int | None]) -> pa.Table:
    named = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(named, schema=SCHEMA)
