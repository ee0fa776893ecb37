"""Vectorised functions that tests run, and functions over single rows that do the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import gpu_windows as gw
from gpu_windows.rules import LONG_MAX

LONG, TEXT = pa.int64(), pa.string()
Row = Mapping[str, Any]


class Inactive(gw.functions.KeyedProcessFunction):
    """Counts the rows of a key; a timer, which each row moves, tells when none has come."""

    def __init__(self, gap: int = 7) -> None:
        self.gap = gap

    output = pa.schema([("what", TEXT), ("n", LONG), ("at", LONG)])
    state: ClassVar = {
        "n": gw.functions.ValueStateDescriptor(LONG),
        "at": gw.functions.ValueStateDescriptor(LONG),
    }

    def process_element(self, row: Row, context: Any) -> Iterator[Row]:
        n, at = context.state("n"), context.state("at")
        n.update(n.value(0) + 1)
        if at.value() is not None:
            context.delete_event_time_timer(at.value())
        at.update(context.timestamp + self.gap)
        context.register_event_time_timer(at.value())
        yield {"what": "row", "n": n.value(), "at": context.timestamp}

    def on_timer(self, time: int, context: Any) -> Iterator[Row]:
        yield {"what": "quiet", "n": context.state("n").value(), "at": time}
        context.state("n").clear()
        context.state("at").clear()


class VectorInactive(gw.functions.VectorProcessFunction):
    """Does what `Inactive` does."""

    def __init__(self, gap: int = 7) -> None:
        self.gap = gap

    output = Inactive.output
    state: ClassVar = {"n": LONG, "at": LONG}

    def process_batch(self, batch: gw.typing.RowsBatch) -> gw.functions.VectorResult:
        assert batch.timestamps is not None
        before = pc.fill_null(batch.state["n"], 0).to_numpy()
        rank = np.arange(len(batch.timestamps)) - np.repeat(batch.offsets[:-1], batch.counts)
        columns = {
            "what": ["row"] * len(rank),
            "n": np.repeat(before, batch.counts) + rank + 1,
            "at": batch.timestamps,
        }
        at = batch.timestamps[batch.offsets[1:] - 1] + self.gap
        had = np.flatnonzero(batch.state["at"].is_valid())
        return gw.functions.VectorResult(
            rows=(pa.table(columns, schema=self.output), batch.places),
            state=pa.table({"n": before + batch.counts, "at": at}),
            deleted_event_timers=(had, batch.state["at"].drop_null().to_numpy()),
            event_timers=(np.arange(len(batch)), at),
        )

    def on_timers(self, batch: gw.typing.TimersBatch) -> gw.functions.VectorResult:
        n = batch.state["n"]
        rows = pa.table({"what": ["quiet"] * len(batch), "n": n, "at": batch.times})
        nothing = pa.nulls(len(batch), LONG)
        return gw.functions.VectorResult(rows=rows, state=pa.table({"n": nothing, "at": nothing}))


class Totals(gw.functions.VectorProcessFunction):
    """Counts the rows of a key and adds up a value, in any order; tells it at the end."""

    output = pa.schema([("n", LONG), ("total", LONG)])
    state: ClassVar = {"n": LONG, "total": LONG}
    order_free = True

    def process_batch(self, batch: gw.typing.RowsBatch) -> gw.functions.VectorResult:
        values = pc.fill_null(batch.rows["v"], 0).to_numpy()
        before = [pc.fill_null(batch.state[name], 0).to_numpy() for name in ("n", "total")]
        added = batch.counts, np.add.reduceat(values, batch.offsets[:-1])
        state = [old + new for old, new in zip(before, added, strict=True)]
        return gw.functions.VectorResult(
            state=pa.table(state, names=["n", "total"]),
            event_timers=(np.arange(len(batch)), np.full(len(batch), LONG_MAX)),
        )

    def on_timers(self, batch: gw.typing.TimersBatch) -> gw.functions.VectorResult:
        return gw.functions.VectorResult(rows=batch.state)


class Chained(gw.functions.KeyedProcessFunction):
    """Timers that set timers, of both times; lists and texts in state; side outputs, counters."""

    output = pa.schema([("what", TEXT), ("at", LONG), ("seen", TEXT)])
    side_outputs: ClassVar = {"odd": pa.schema([("v", LONG)]), "timers": pa.schema([("at", LONG)])}
    uses_processing_time = True
    state: ClassVar = {
        "name": gw.functions.ValueStateDescriptor(TEXT),
        "last": gw.functions.ListStateDescriptor(LONG),
        "fired": gw.functions.ValueStateDescriptor(pa.float32()),
    }

    def process_element(self, row: Row, context: Any) -> Iterator[Row]:
        v, at = row["v"], context.timestamp
        name, last = context.state("name"), context.state("last")
        if v is None:
            for each in self.state:
                context.state(each).clear()
            return
        name.update(f"v{v}")
        last.update([*last.get(), v][-3:])
        context.register_event_time_timer(at + v % 4 * 5)
        context.delete_event_time_timer(at + v % 3 * 5)
        context.register_processing_time_timer(context.current_processing_time + v % 6)
        context.delete_processing_time_timer(context.current_processing_time + 3)
        if v % 2:
            context.output("odd", {"v": v})
            context.count("odd values", v)
        seen = repr([name.value(), last.get(), context.state("fired").value()])
        yield {"what": "row", "at": at, "seen": seen}

    def on_timer(self, time: int, context: Any) -> Iterator[Row]:
        context.output("timers", {"at": time})
        context.state("fired").update(context.state("fired").value(0.0) + 1)
        if again(context.time_domain, time):
            context.register_event_time_timer(time + 5)
            context.register_processing_time_timer(context.current_processing_time + 1)
        yield {"what": context.time_domain, "at": time, "seen": None}


def again(domain: str, time: int) -> bool:
    return domain == "event_time" and time % 3 == 0 and time < LONG_MAX - 5


class VectorChained(gw.functions.VectorProcessFunction):
    """Does what `Chained` does, key by key."""

    output = Chained.output
    side_outputs: ClassVar = Chained.side_outputs
    uses_processing_time = True
    state: ClassVar = {"name": TEXT, "last": pa.large_list(LONG), "fired": pa.float32()}

    def process_batch(self, batch: gw.typing.RowsBatch) -> gw.functions.VectorResult:
        assert batch.timestamps is not None
        given, now = _Given(self, batch), batch.current_processing_time
        rows = zip(
            batch.places, batch.rows["v"].to_pylist(), batch.timestamps.tolist(), strict=True
        )
        for key, v, at in rows:
            if v is None:
                given.state[key] = dict.fromkeys(self.state)
                continue
            kept = given.state[key]
            kept |= {"name": f"v{v}", "last": [*(kept["last"] or []), v][-3:]}
            given.event[key, at + v % 4 * 5] = True
            given.event[key, at + v % 3 * 5] = False
            given.processing[key, now + v % 6] = True
            given.processing[key, now + 3] = False
            if v % 2:
                given.sides["odd"].append((key, {"v": v}))
                given.counts["odd values"] = given.counts.get("odd values", 0) + v
            given.rows.append((key, {"what": "row", "at": at, "seen": repr([*kept.values()])}))
        return given.result()

    def on_timers(self, batch: gw.typing.TimersBatch) -> gw.functions.VectorResult:
        given, domain = _Given(self, batch), batch.time_domain
        for key, time in zip(batch.places, batch.times.tolist(), strict=True):
            given.sides["timers"].append((key, {"at": time}))
            given.state[key]["fired"] = (given.state[key]["fired"] or 0.0) + 1
            if again(domain, time):
                given.event[key, time + 5] = True
                given.processing[key, batch.current_processing_time + 1] = True
            given.rows.append((key, {"what": domain, "at": time, "seen": None}))
        return given.result()


class _Given:
    """What `VectorChained` makes of a batch."""

    def __init__(self, function: VectorChained, batch: Any) -> None:
        self._function = function
        self.state = batch.state.to_pylist()
        self.rows: list[Any] = []
        self.event: dict[Any, bool] = {}
        self.processing: dict[Any, bool] = {}
        self.sides: dict[str, list[Any]] = {tag: [] for tag in function.side_outputs}
        self.counts: dict[str, int] = {}

    def result(self) -> gw.functions.VectorResult:
        function = self._function
        timers = {
            f"{prefix}{name}_timers": _pairs(changes, is_set=is_set)
            for name, changes in (("event", self.event), ("processing", self.processing))
            for prefix, is_set in (("", True), ("deleted_", False))
        }
        return gw.functions.VectorResult(
            rows=_table(self.rows, function.output),
            state=pa.Table.from_pylist(self.state, pa.schema(function.state)),
            sides={tag: _table(self.sides[tag], s) for tag, s in function.side_outputs.items()},
            counts=self.counts,
            **timers,
        )


def _pairs(changes: dict[Any, bool], *, is_set: bool) -> Any:
    some = [pair for pair, wanted in changes.items() if wanted is is_set]
    keys, times = zip(*some, strict=True) if some else ((), ())
    return np.array(keys, np.int32), np.array(times, np.int64)


def _table(rows: list[Any], schema: pa.Schema) -> Any:
    table = pa.Table.from_pylist([row for _, row in rows], schema)
    return table, np.array([key for key, _ in rows], np.int64)
