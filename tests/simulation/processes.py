"""Draws process functions over single rows, of one input or of two."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, ClassVar

import pyarrow as pa

import gpu_windows as gw
from gpu_windows.datastream.connected import BroadcastStream
from gpu_windows.functions.keyed_process import KeyedProcess
from gpu_windows.planning.kinds.process import ProcessQuery
from gpu_windows.planning.query import Query
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.watermarks import WatermarkStrategy
from tests.operators.process.functions import LONG, Everything, Limits
from tests.simulation import joins, parts

#: What functions over two inputs call columns.
SEEN = {"v": "i", "name": "text", "limit": "i"}


def process(rng: Random, schema: pa.Schema, watermarks: WatermarkStrategy) -> Query:
    """Draw a function over the rows of one input."""
    function = Everything(_ttl(rng), uses_processing_time=rng.random() < 0.4)
    seen = rng.choice(["i", "small"])
    return ProcessQuery(
        schema=schema,
        time="ts",
        watermarks=watermarks,
        keys=parts.keys(rng),
        process=KeyedProcess(function, Everything.output, (seen,), ("v",)),
        arrival_order=("seq",),
    )


def connected(rng: Random, schema: pa.Schema) -> Query:
    """Draw a function over the rows of two connected inputs."""
    left, right = joins.sides(rng, schema)
    function = Waiting(rng.randint(0, 40), _ttl(rng))
    shown = {"v": SEEN["v"]}
    both = left.connect(right)
    made = both.with_outputs().process(
        function, shown, shown, output=function.output, arrival_order=("seq",)
    )
    return made.plan.query


def broadcast(rng: Random, schema: pa.Schema) -> Query:
    """Draw a function over the rows of one input, and those of another one that is broadcast."""
    keyed, other = joins.sides(rng, schema)
    both = keyed.connect(BroadcastStream(other.source, other.time, other.watermarks))
    rules = {name: SEEN[name] for name in ("name", "limit")}
    made = both.with_outputs().process(
        Limits(), {"v": SEEN["v"]}, rules, output=Limits.output, arrival_order=("seq",)
    )
    return made.plan.query


def _ttl(rng: Random) -> gw.functions.StateTtlConfig | None:
    if rng.random() < 0.5:
        return None
    return gw.functions.StateTtlConfig(rng.randint(1, 30), update_on_read=rng.random() < 0.5)


class Waiting(gw.functions.KeyedCoProcessFunction):
    """Left rows wait for a right one for some time; a right row is kept for those to come."""

    output = pa.schema([("left", LONG), ("right", LONG), ("at", LONG)])
    side_outputs: ClassVar = {"alone": pa.schema([("left", pa.list_(LONG)), ("seen", LONG)])}

    def __init__(self, patience: int, ttl: gw.functions.StateTtlConfig | None) -> None:
        self.patience, self._ttl = patience, ttl

    @property
    def state(self) -> dict[str, gw.typing.StateDescriptor]:
        return {
            "waiting": gw.functions.ListStateDescriptor(LONG),
            "right": gw.functions.ValueStateDescriptor(LONG, ttl=self._ttl),
            "times": gw.functions.MapStateDescriptor(LONG, LONG, ttl=self._ttl),
        }

    def process_element1(self, row: Any, context: Any) -> Iterator[dict[str, Any]]:
        v, at = row["v"] or 0, context.timestamp
        right = context.state("right").value()
        if right is not None:
            yield {"left": v, "right": right, "at": context.current_watermark}
            return
        context.state("waiting").add(v)
        until = min(at + self.patience, LONG_MAX)
        context.state("times").put(v % 3, until)
        context.register_event_time_timer(until)

    def process_element2(self, row: Any, context: Any) -> Iterator[dict[str, Any]]:
        v, waiting = row["v"], context.state("waiting")
        context.state("right").update(v)
        for left in waiting.get():
            yield {"left": left, "right": v, "at": context.timestamp}
        waiting.clear()
        for until in context.state("times").values():
            context.delete_event_time_timer(until)

    def on_timer(self, time: int, context: Any) -> Iterator[dict[str, Any]]:
        seen = dict(context.state("times").items())
        alone = {"left": context.state("waiting").get(), "seen": len(seen)}
        context.output("alone", alone)
        context.state("waiting").clear()
        yield {"left": None, "right": None, "at": time}
