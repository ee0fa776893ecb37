"""Process functions at the corners: names like ours, what is kept, functions used twice."""

from __future__ import annotations

from typing import Any, ClassVar

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.operators.build import restored_operator
from gpu_windows.operators.state.store import MemoryStore
from gpu_windows.planning.planner import plan
from tests.operators.process.functions import LONG, outputs, table

#: Names that the store uses itself.
OURS = (
    "event_timers", "processing_timers", "kind", "number", "key0", "__hash", "what", "written",
    "state", "expiry", "n", "n what", "event_time", "processing_time", "broadcast state",
)  # fmt: skip
NUMBER = pa.schema([("n", LONG)])


def micro_batches(function: Any, *rows: Any) -> list[list[Any]]:
    """Return the numbers that a function gives for each row, in a micro-batch of its own."""
    planned = plan(outputs(function, table()).plan.query, bounded=False)
    store, found = MemoryStore(), []
    for row in rows:
        operator = restored_operator(planned, store)
        given = [each for e in operator.process(table(row)) for each in e.results["n"].to_pylist()]
        operator.save()
        found.append(given)
    return found


class Named(gw.KeyedProcessFunction):
    """Counts the rows of a key under many names."""

    output = NUMBER
    state: ClassVar = {
        name: gw.ValueStateDescriptor(LONG, ttl=ttl)
        for name, ttl in zip(OURS, (None, gw.StateTtlConfig(10**15)) * len(OURS), strict=False)
    }

    def process_element(self, row: Any, context: gw.KeyedContext) -> Any:
        for name in OURS:
            state = context.state(name)
            state.update(state.value(0) + 1)
        context.register_event_time_timer(row["v"])
        counts = {context.state(name).value() for name in OURS}
        assert len(counts) == 1
        return [{"n": counts.pop()}]

    def on_timer(self, time: int, context: gw.TimerContext) -> None:
        del time, context


class VectorNamed(gw.VectorProcessFunction):
    """The same of many keys."""

    output = NUMBER
    state: ClassVar = dict.fromkeys(OURS, LONG)

    def process_batch(self, batch: gw.RowsBatch) -> gw.VectorResult:
        counts = [pa.array([(n or 0) + 1 for n in batch.state[name].to_pylist()]) for name in OURS]
        timers = range(len(batch)), [100] * len(batch)
        return gw.VectorResult(
            rows=pa.table({"n": counts[0]}),
            state=pa.table(counts, names=[*OURS]),
            event_timers=tuple(map(pa.array, timers)),
        )


@pytest.mark.parametrize("kind", [Named, VectorNamed])
def test_states_may_have_any_name(kind: Any) -> None:
    assert micro_batches(kind(), ("a", 1, 50), ("a", 2, 50), ("a", 3, 60)) == [[1], [2], [3]]
