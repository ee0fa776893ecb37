"""Process functions at the corners: names like ours, what is kept, functions used twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.operators.build import restored_operator
from gpu_windows.operators.process.opened import OpenedFunction
from gpu_windows.operators.state.store import MemoryStore
from gpu_windows.planning.planner import plan
from gpu_windows.query.process import ProcessQuery
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


class Counts(gw.KeyedProcessFunction):
    """Numbers the rows of a key; at the second one it waits for what a test says."""

    output = NUMBER
    state: ClassVar = {"n": gw.ValueStateDescriptor(LONG)}
    waits: ClassVar[Any] = None

    def open(self, context: gw.OpenContext) -> None:
        self.n = context.state("n")

    def process_element(self, row: Any, context: gw.KeyedContext) -> Any:
        self.n.update(self.n.value(0) + 1)
        if row["v"] == 2 and Counts.waits is not None:
            Counts.waits(self)
        yield {"n": self.n.value()}


ROWS = [("a", i, i) for i in (1, 2, 3, 4)]


def numbers(function: Any) -> list[int]:
    found: list[int] = outputs(function, table(*ROWS)).result()["n"].to_pylist()
    return found


def test_a_function_may_be_in_two_queries_that_run_in_turn(monkeypatch: Any) -> None:
    inner: list[Any] = []

    def waits(_: Any) -> None:
        monkeypatch.setattr(Counts, "waits", None)
        inner.append(numbers(function))

    function = Counts()
    monkeypatch.setattr(Counts, "waits", waits)
    assert numbers(function) == [1, 2, 3, 4]
    assert inner == [[1, 2, 3, 4]]


def test_a_function_may_be_in_two_threads(monkeypatch: Any) -> None:
    barrier = Barrier(2, timeout=20)
    monkeypatch.setattr(Counts, "waits", lambda _: barrier.wait())
    function = Counts()
    with ThreadPoolExecutor(2) as pool:
        found = [*pool.map(numbers, [function] * 2)]
    assert found == [[1, 2, 3, 4]] * 2


def test_a_function_that_ran_holds_no_state() -> None:
    function = Counts()
    before = vars(function).copy()
    query = outputs(function, table()).plan.query
    assert isinstance(query, ProcessQuery)
    opened = OpenedFunction(query)
    opened.show({"n": {("a",): 1}}, 0)
    assert vars(function) == before
    opened.close()
    assert opened.process.function.n.value() is None  # type: ignore[attr-defined]
    assert opened.kept["n"].held == {}
