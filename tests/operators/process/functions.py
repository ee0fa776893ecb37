"""Functions over single rows that tests run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pyarrow as pa

import gpu_windows as gw
from gpu_windows.rules import LONG_MAX

LONG, TEXT = pa.int64(), pa.string()
SCHEMA = pa.schema([("k", TEXT), ("ts", LONG), ("v", LONG)])
Row = Mapping[str, Any]


class Last(gw.functions.AggregateFunction):
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


def declared(ttl: gw.functions.StateTtlConfig | None) -> dict[str, Any]:
    """State of every kind."""
    return {
        "value": gw.functions.ValueStateDescriptor(LONG, ttl=ttl),
        "list": gw.functions.ListStateDescriptor(LONG, ttl=ttl),
        "map": gw.functions.MapStateDescriptor(TEXT, LONG, ttl=ttl),
        "sum": gw.functions.ReducingStateDescriptor(add, LONG, ttl=ttl),
        "last": gw.functions.AggregatingStateDescriptor(Last(), ttl=ttl),
    }


class Everything(gw.functions.KeyedProcessFunction):
    """Keeps state of all kinds, sets and takes back timers, has side outputs."""

    output = pa.schema([("what", TEXT), ("at", LONG), ("seen", TEXT)])
    side_outputs: ClassVar = {"odd": pa.schema([("v", LONG)]), "timers": pa.schema([("at", LONG)])}

    def __init__(
        self,
        ttl: gw.functions.StateTtlConfig | None = None,
        *,
        uses_processing_time: bool = True,
        more: Mapping[str, gw.typing.StateDescriptor] | None = None,
    ) -> None:
        self._ttl, self._waits, self._more = ttl, uses_processing_time, more or {}

    @property
    def state(self) -> Mapping[str, gw.typing.StateDescriptor]:
        return {**declared(self._ttl), **self._more}

    @property
    def uses_processing_time(self) -> bool:
        return self._waits

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
        context.register_event_time_timer(min(at + v % 4 * 5, LONG_MAX))
        context.delete_event_time_timer(min(at + v % 3 * 5, LONG_MAX))
        self._wait(v % 6, context)
        if v % 2:
            context.output("odd", {"v": v})
            context.count("odd values", v)
        yield {"what": "row", "at": at, "seen": self._seen(context)}

    def on_timer(self, time: int, context: Any) -> Iterator[Row]:
        context.output("timers", {"at": time})
        if context.time_domain == "event_time" and time % 3 == 0 and time < LONG_MAX - 5:
            context.register_event_time_timer(time + 5)
            self._wait(1, context)
        if time % 4 == 0:
            context.state("list").clear()
        yield {"what": context.time_domain, "at": time, "seen": self._seen(context)}

    def _wait(self, ticks: int, context: Any) -> None:
        if self.uses_processing_time:
            context.register_processing_time_timer(context.current_processing_time + ticks)

    def _seen(self, context: Any) -> str:
        """Return all that is kept, and the times.

        Where a timer of processing time fires, the watermark is that of the last call.
        """
        of_map = context.state("map")
        kept = [
            context.state("value").value(),
            context.state("list").get(),
            dict(of_map.items()),
            of_map.get("m1"),
            of_map.contains("m2"),
            context.state("sum").get(),
            context.state("last").get(),
            None if context.time_domain == "processing_time" else context.current_watermark,
            context.current_processing_time if self.uses_processing_time else None,
            context.key,
        ]
        return repr(kept)


class Limits(gw.functions.KeyedBroadcastProcessFunction):
    """Keyed rows are compared with limits that are broadcast; values above them wait a while."""

    output = pa.schema([("what", TEXT), ("v", LONG), ("limits", TEXT)])
    side_outputs: ClassVar = {"told": pa.schema([("v", LONG)])}
    broadcast_state: ClassVar = {
        "limits": gw.functions.MapStateDescriptor(TEXT, LONG),
        "seen": gw.functions.MapStateDescriptor(LONG, LONG),
    }
    state: ClassVar = {"above": gw.functions.ListStateDescriptor(LONG)}

    def process_element(self, row: Row, context: Any) -> Iterator[Row]:
        v, limits = row["v"] or 0, context.broadcast_state("limits")
        if any(v > limit for limit in limits.values()):
            context.state("above").add(v)
            context.register_event_time_timer(min(context.timestamp + 5, LONG_MAX))
            context.output("told", {"v": v})
        yield {"what": "row", "v": v, "limits": str(dict(limits.items()))}

    def process_broadcast_element(self, row: Row, context: Any) -> Iterator[Row]:
        limits, seen = map(context.broadcast_state, ("limits", "seen"))
        name, limit = row["name"], row["limit"]
        if limit is not None:
            seen.put(limit, seen.get(limit, 0) + 1)
        if limit is None:
            limits.clear()
            seen.clear()
        elif limit % 5 == 0 and limits.contains(name):
            limits.remove(name)
        else:
            limits.put(name, limit)
            context.output("told", {"v": limit})
        context.count("broadcast rows")
        yield {"what": "limit", "v": limit, "limits": str(dict(limits.items()))}

    def on_timer(self, time: int, context: Any) -> Iterator[Row]:
        above = context.state("above").get()
        known = dict(context.broadcast_state("seen").items())
        yield {"what": "timer", "v": sum(above), "limits": f"{known} {time}"}


def outputs(
    function: Any, table: pa.Table, *, columns: tuple[str, ...] = ("v",), **options: Any
) -> gw.typing.Outputs:
    """Return the outputs of a function over a table with the columns of `SCHEMA`."""
    strategy = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(table).event_time("ts", strategy).key_by("k")
    return keyed.with_outputs().process(function, columns, output=function.output, **options)


def table(*rows: tuple[str | None, int | None, int | None]) -> pa.Table:
    named = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(named, schema=SCHEMA)
