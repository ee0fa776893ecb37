"""Process functions at the corners: names like ours, what is kept, functions used twice."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import InvalidFunctionError
from gpu_windows.operators.build import restore_operator
from gpu_windows.operators.process.open_function import OpenedFunction
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.kinds.process import ProcessQuery
from gpu_windows.planning.planner import plan
from tests.operators.process.functions import LONG, outputs, table
from tests.operators.process.test_broadcast import broadcast_rows, keyed_rows, rules
from tests.operators.process.test_broadcast import outputs as of_both

#: Names that the store uses itself.
OURS = (
    "event_timers", "processing_timers", "kind", "number", "key0", "__hash", "what", "written",
    "state", "expiry", "n", "n what", "event_time", "processing_time", "broadcast state",
)  # fmt: skip
NUMBER = pa.schema([("n", LONG)])


def micro_batches(function: Any, *rows: Any) -> list[list[Any]]:
    """Return the numbers that a function gives for each row, in a micro-batch of its own."""
    planned = plan(outputs(function, table()).plan.query, bounded=False)
    store, found = MemoryLog(), []
    for row in rows:
        operator = restore_operator(planned, store)
        given = [each for e in operator.process(table(row)) for each in e.results["n"].to_pylist()]
        operator.save()
        found.append(given)
    return found


class Named(gw.functions.KeyedProcessFunction):
    """Counts the rows of a key under many names."""

    output = NUMBER
    state: ClassVar = {
        name: gw.functions.ValueStateDescriptor(LONG, ttl=ttl)
        for name, ttl in zip(
            OURS, (None, gw.functions.StateTtlConfig(10**15)) * len(OURS), strict=False
        )
    }

    def process_element(self, row: Any, context: gw.typing.KeyedContext) -> Any:
        for name in OURS:
            state = context.state(name)
            state.update(state.value(0) + 1)
        context.register_event_time_timer(row["v"])
        counts = {context.state(name).value() for name in OURS}
        assert len(counts) == 1
        return [{"n": counts.pop()}]

    def on_timer(self, time: int, context: gw.typing.TimerContext) -> None:
        del time, context


class VectorNamed(gw.functions.VectorProcessFunction):
    """The same of many keys."""

    output = NUMBER
    state: ClassVar = dict.fromkeys(OURS, LONG)

    def process_batch(self, batch: gw.typing.RowsBatch) -> gw.functions.VectorResult:
        counts = [pa.array([(n or 0) + 1 for n in batch.state[name].to_pylist()]) for name in OURS]
        timers = range(len(batch)), [100] * len(batch)
        return gw.functions.VectorResult(
            rows=pa.table({"n": counts[0]}),
            state=pa.table(counts, names=[*OURS]),
            event_timers=tuple(map(pa.array, timers)),
        )


@pytest.mark.parametrize("kind", [Named, VectorNamed])
def test_states_may_have_any_name(kind: Any) -> None:
    assert micro_batches(kind(), ("a", 1, 50), ("a", 2, 50), ("a", 3, 60)) == [[1], [2], [3]]


class Counts(gw.functions.KeyedProcessFunction):
    """Numbers the rows of a key; at the second one it waits for what a test says."""

    output = NUMBER
    state: ClassVar = {"n": gw.functions.ValueStateDescriptor(LONG)}
    waits: ClassVar[Any] = None

    def open(self, context: gw.typing.OpenContext) -> None:
        self.n = context.state("n")

    def process_element(self, row: Any, context: gw.typing.KeyedContext) -> Any:
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
    opened.bind({"n": {("a",): 1}}, 0)
    assert vars(function) == before
    opened.close()
    assert opened.process.function.n.value() is None  # type: ignore[attr-defined]
    assert opened.cells["n"].by_key == {}


NAN = float("nan")


class Puts(gw.functions.KeyedProcessFunction):
    """Counts rows by keys of a map, which a test says; None where it has none."""

    output = NUMBER

    def __init__(self, keys: Any, dtype: pa.DataType, ttl: Any = None) -> None:
        self._keys, self._dtype, self._ttl = keys, dtype, ttl

    @property
    def state(self) -> dict[str, gw.typing.StateDescriptor]:
        return {"m": gw.functions.MapStateDescriptor(self._dtype, LONG, ttl=self._ttl)}

    def process_element(self, row: Any, context: gw.typing.KeyedContext) -> Any:
        counts = context.state("m")
        for key in self._keys:
            counts.put(key, counts.get(key, 0) + 1)
        assert all(counts.contains(key) for key in self._keys)
        return [{"n": n} for n in counts.values()]


@pytest.mark.parametrize("ttl", [None, gw.functions.StateTtlConfig(10**15)])
def test_all_nan_are_one_key_of_a_map(ttl: Any) -> None:
    function = Puts((NAN, 1, -NAN, 0.0, -0.0), pa.float64(), ttl)
    assert micro_batches(function, ("a", 1, 1), ("a", 2, 1)) == [[2, 1, 2], [4, 2, 4]]


class PutsForAll(gw.functions.KeyedBroadcastProcessFunction):
    """Puts NaN for each row of the one side; gives how many there are for each of the other."""

    output = NUMBER
    broadcast_state: ClassVar = {"m": gw.functions.MapStateDescriptor(pa.float64(), pa.list_(LONG))}

    def process_broadcast_element(self, row: Any, context: gw.typing.BroadcastContext) -> None:
        context.broadcast_state("m").put(float("nan"), [row["limit"]])

    def process_element(self, row: Any, context: gw.typing.ReadOnlyContext) -> Any:
        for value in (counts := context.broadcast_state("m")).values():
            value.append(0)
        return [{"n": len(each)} for each in counts.values()]


def test_keys_and_values_of_broadcast_state() -> None:
    """All NaN are one key, from a store too; who changes a value that was read changes a copy."""
    planned = plan(of_both(PutsForAll(), table(), rules()).plan.query, bounded=False)
    store = MemoryLog()
    for _ in range(2):
        operator = restore_operator(planned, store)
        found = [
            n
            for rows in (broadcast_rows(("x", 1, 1)), keyed_rows(("a", 1, 1), ("a", 1, 1)))
            for e in operator.process(rows)
            for n in e.results["n"].to_pylist()
        ]
        operator.save()
        assert found == [1, 1]


def test_a_map_has_no_key_none() -> None:
    with pytest.raises(
        InvalidFunctionError, match=r"'m' of Puts is a map: its keys must not be None"
    ):
        micro_batches(Puts((None,), pa.string()), ("a", 1, 1))
    assert micro_batches(Reads((None,), pa.string()), ("a", 1, 1)) == [[7]]


class Reads(Puts):
    """Asks for keys that are not there."""

    def process_element(self, row: Any, context: gw.typing.KeyedContext) -> Any:
        state = context.state("m")
        assert not any(map(state.contains, self._keys))
        return [{"n": state.get(key, 7)} for key in self._keys]


@pytest.mark.parametrize("dtype", [pa.list_(LONG), pa.struct({"a": LONG}), pa.map_(LONG, LONG)])
def test_keys_of_maps_are_not_nested(dtype: pa.DataType) -> None:
    with pytest.raises(InvalidFunctionError, match="'m' with keys that are neither lists nor"):
        outputs(Puts((), dtype), table())


class GoesOn(gw.functions.KeyedProcessFunction):
    """Goes on with what it gave, and with what its state gave it."""

    output = pa.schema([("all", pa.list_(LONG)), ("v", LONG)])
    side_outputs: ClassVar = {"same": pa.schema([("v", LONG)])}
    state: ClassVar = {
        "all": gw.functions.ValueStateDescriptor(pa.list_(LONG)),
        "lists": gw.functions.ListStateDescriptor(pa.list_(LONG)),
        "map": gw.functions.MapStateDescriptor(LONG, pa.list_(LONG)),
    }

    def process_element(
        self, row: Any, context: gw.typing.KeyedContext
    ) -> Iterator[dict[str, Any]]:
        state, given = context.state("all"), {"v": row["v"]}
        held = state.value([])
        held.append(row["v"])
        state.update(held)
        held.append(-1)
        yield (result := {"all": state.value(), **given})
        context.state("lists").add([row["v"]])
        context.state("map").put(1, [row["v"]])
        for seen in (state.value(), *context.state("lists").get(), context.state("map").get(1)):
            seen.append(0.5)
        result["v"] = result["all"] = None
        context.output("same", given)
        given["v"] = None


def test_what_was_given_stays_as_it_was() -> None:
    rows = [table(("a", n, n)) for n in range(3)]
    whole = outputs(GoesOn(), pa.concat_tables(rows))
    wanted = [{"k": "a", "all": [*range(n + 1)], "v": n} for n in range(3)]
    assert whole.result().to_pylist() == wanted
    assert whole.side("same")["v"].to_pylist() == [0, 1, 2]
    planned, store = plan(outputs(GoesOn(), table()).plan.query, bounded=False), MemoryLog()
    found = []
    for each in rows:
        operator = restore_operator(planned, store)
        found += [row for e in operator.process(each) for row in e.results.to_pylist()]
        operator.save()
    assert found == wanted
