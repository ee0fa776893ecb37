"""Vectorised process functions: they give what functions over single rows do; what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import gpu_windows as gw
from gpu_windows.errors import FunctionFailedError, InvalidFunctionError, QueryError
from gpu_windows.operators.base import Operator
from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.process.base import TIMERS_LEFT
from gpu_windows.operators.process.keyed_arrays import TimerArrays
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from tests.examples import examples
from tests.operators.process.functions import LONG, TEXT, outputs, table
from tests.operators.process.test_process import steps
from tests.operators.process.vector_functions import (
    Chained,
    Inactive,
    VectorChained,
    VectorInactive,
)
from tests.operators.state.put_away import Named
from tests.operators.state.test_key_types import KEYS


def planned(function: Any, **options: Any) -> Plan:
    return plan(outputs(function, table(), **options).plan.query, bounded=False)


def outcome(operator: Operator, step: Named) -> tuple[list[Any], dict[str, list[Any]], Counters]:
    """Return results, side outputs and counters of a step; each key's in the order they came."""
    kind, value = step
    call = {"rows": operator.process, "watermark": operator.advance_watermark}
    emissions = [*call.get(kind, operator.advance_processing_time)(value)]
    sides: dict[str, list[Any]] = {}
    for emission in emissions:
        for tag, rows in emission.sides.items():
            sides.setdefault(tag, []).extend(rows.to_pylist())
    results = [row for e in emissions for row in e.results.to_pylist()]
    counters = sum((e.counters for e in emissions), Counters())
    return by_key(results), {t: by_key(rows) for t, rows in sides.items() if rows}, counters


def by_key(rows: list[Any]) -> list[Any]:
    return sorted(rows, key=lambda row: repr(row["k"]))


def unordered(found: tuple[Any, dict[str, Any], Any]) -> Any:
    results, sides, counters = found
    in_no_order = {tag: sorted(map(repr, rows)) for tag, rows in sides.items()}
    return sorted(map(repr, results)), in_no_order, counters


@examples(120)
@given(steps())
def test_inactivity_as_row_at_a_time(found: list[Named]) -> None:
    agree(Inactive(), VectorInactive(), found, lambda each: each)


@examples(120)
@given(steps())
def test_chained_timers_as_row_at_a_time(found: list[Named]) -> None:
    """Timers that timers set come after all that were due, so a key's order may differ."""
    agree(Chained(), VectorChained(), found, unordered)


def agree(by_row: Any, in_batches: Any, found: list[Named], shown: Callable[[Any], Any]) -> None:
    """Compare a function over rows with one over batches, in memory and put away."""
    one, other = planned(by_row), planned(in_batches)
    wanted, got, store = build_operator(one), build_operator(other), MemoryLog()
    for step in found:
        expected = shown(outcome(wanted, step))
        assert shown(outcome(got, step)) == expected
        restored = restore_operator(other, store)
        due = dict(zip(("watermark", "processing_time"), restored.next_timers(), strict=True))
        kept = shown(outcome(restored, step))
        restored.save()
        assert kept == expected
        if step[0] in due and step[1] < LONG_MAX and expected[0]:
            waits = due[step[0]]
            assert waits is not None
            assert waits <= step[1]
    assert restore_operator(other, store).state_size() == got.state_size()


@pytest.mark.parametrize("rows", [0, 1, 500])
def test_batches_mean_nothing(rows: int) -> None:
    """Nor do they to keys that come again when state has grown."""
    rng = np.random.default_rng(3)
    keys, times = rng.integers(0, 40, rows), np.sort(rng.integers(0, 2_000, rows))
    data = pa.table({"k": keys.astype(str), "ts": times, "v": keys})
    found = [
        outputs(function, data, batch_rows=size).result()
        for function in (Inactive(), VectorInactive())
        for size in (1, 7, 1 << 17)
    ]
    for each in found:
        assert by_key(each.to_pylist()) == by_key(found[0].to_pylist())


def test_few_of_many_keys() -> None:
    """As many as have no place in a table of all keys for so few rows."""
    one, other = (build_operator(planned(each)) for each in (Inactive(), VectorInactive()))
    rng, seen = np.random.default_rng(0), 0
    for keys in (np.arange(70_000), rng.integers(0, 70_000, 10), rng.integers(0, 70_000, 3)):
        columns = {"k": keys.astype(str), "ts": np.arange(seen, seen + len(keys)), "v": keys}
        seen += len(keys)
        step = ("rows", pa.table(columns))
        assert outcome(other, step) == outcome(one, step)


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_all_kinds(kind: str) -> None:
    """Null and 0 are two keys with one hash, NaN is one key; a key is shown as it came."""
    dtype, keys = KEYS[kind]
    keyed = pa.schema([("k", dtype), ("ts", LONG), ("v", LONG)])
    calls = [[0, 0], [2], [1, 1], [2, 2], [0, 1], [2, 0, 1, 1], [0], [1, 2]]
    tables = [
        pa.Table.from_pylist([{"k": keys[i], "ts": n, "v": 1} for i in call], keyed)
        for n, call in enumerate(calls)
    ]
    made = planned_for(keyed)
    store, whole = MemoryLog(), build_operator(made)
    for rows in tables:
        operator = restore_operator(made, store)
        got = repr(outcome(operator, ("rows", rows)))
        operator.save()
        assert got == repr(outcome(whole, ("rows", rows)))
    (last,) = [*whole.advance_watermark(LONG_MAX)]
    assert sorted(last.results["n"].to_pylist()) == [5, 5, 6]
    assert last.results.schema.field("k").type == dtype


def planned_for(schema: pa.Schema) -> Plan:
    strategy = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(schema.empty_table()).event_time("ts", strategy).key_by("k")
    function = VectorInactive()
    return plan(
        keyed.with_outputs().process(function, output=function.output).plan.query, bounded=False
    )


class Told(gw.functions.VectorProcessFunction):
    """Tells what it sees, and of opening and closing."""

    output = pa.schema([("at", LONG)])
    uses_processing_time = True
    told: ClassVar[list[Any]] = []

    def open(self, context: gw.typing.RuntimeContext) -> None:
        self.told.append("open")

    def close(self) -> None:
        self.told.append("close")

    def process_batch(self, batch: gw.typing.RowsBatch) -> gw.functions.VectorResult:
        self.told.append((batch.rows.to_pydict(), batch.keys.to_pydict(), batch.timestamps))
        one = np.zeros(1, np.int64)
        return gw.functions.VectorResult(
            processing_timers=(one, one + batch.current_processing_time + 1)
        )


def test_what_a_function_sees() -> None:
    Told.told.clear()
    keyed = gw.stream(table(("a", 4, 1), ("b", 2, 2), ("a", None, 3))).key_by("k")
    found = keyed.with_outputs().process(Told(), ["v"], output=Told.output)
    assert found.result().to_pylist() == []
    assert dict(found.metrics()["user"][0].as_py()) == {TIMERS_LEFT: 1}
    seen = {"v": [1, 3, 2]}, {"k": ["a", "b"]}, None
    assert Told.told == ["open", seen, "close"]
    assert "those of many keys at once" in found.explain()


def test_rows_without_time_are_given_back() -> None:
    found = outputs(VectorInactive(), table(("a", 1, 1), ("a", None, 1), (None, 3, 1)), columns=())
    assert [row["n"] for row in found.result().to_pylist()] == [1, 1, 1, 1]
    assert found.rejected()["rejection_reason"].to_pylist() == ["null_timestamp"]


class Gives(gw.functions.VectorProcessFunction):
    """Gives whatever a test says."""

    output = pa.schema([("n", LONG)])
    state: ClassVar = {"n": LONG, "t": TEXT}
    side_outputs: ClassVar = {"aside": pa.schema([("n", LONG)])}

    def __init__(self, does: Any) -> None:
        self._does = does

    def process_batch(self, batch: gw.typing.RowsBatch) -> Any:
        return self._does(batch)


def gives(**named: Any) -> Callable[[Any], gw.functions.VectorResult]:
    return lambda _: gw.functions.VectorResult(**named)


def numbers(*values: Any) -> pa.Table:
    return pa.table({"n": [*values]})


ONE = np.zeros(1, np.int64)
FAR = np.array([5])
#: What a function gives for two keys, and what is said of it.
WRONG: list[tuple[Any, str, str]] = [
    (lambda _: 3, "must return a VectorResult or None", "int"),
    (gives(rows=numbers(1)), "a row for each of 2 keys, or their places", "1 rows"),
    (gives(rows=pa.table({"m": [1, 2]})), "must return the columns n", "m"),
    (gives(rows=numbers("x", "y")), "columns of the declared types", "n: string"),
    (gives(rows=(numbers(1), np.array([2]))), "ascending places below 2", "2 at row 0"),
    (gives(rows=(numbers(1, 2), np.array([1, 0]))), "ascending places below 2", "0 at row 1"),
    (gives(rows=[1, 2]), "must return a pyarrow.Table", "list"),
    (gives(state=numbers(1, 2)), "as state, must return the columns n, t", "n"),
    (
        gives(state=pa.table({"n": [1], "t": ["x"]})),
        "as state, must return a row for each of 2",
        "1 rows",
    ),
    (gives(state=(numbers(1), ONE)), "as state, must return a row for each key", "a tuple"),
    (gives(event_timers=(ONE, np.zeros(2, int))), "int64[m]", "1 places, 2 times"),
    (gives(event_timers=(FAR, ONE)), "timers of keys below 2", "5"),
    (gives(event_timers=(ONE, np.zeros(1))), "int64[m]", "float64[1]"),
    (gives(deleted_event_timers=ONE), "int64[m]", "ndarray"),
    (
        gives(processing_timers=(ONE, ONE)),
        "must declare uses_processing_time = True",
        "timers of processing time",
    ),
    (gives(sides={"b": numbers(1, 2)}), "it declared aside", "'b'"),
    (
        gives(sides={"aside": numbers(1)}),
        "to the side output 'aside', must return a row for each",
        "1 rows",
    ),
    (gives(sides=3), "side outputs by tag", "int"),
    (gives(counts={"x": 1.5}), "by names and integers", "'x': 1.5"),
    (gives(counts=3), "by names and integers", "int"),
]


@pytest.mark.parametrize(("does", "rule", "value"), WRONG)
def test_what_a_function_gives_wrongly(does: Any, rule: str, value: str) -> None:
    """The error names the function and how much it was given."""
    with pytest.raises(InvalidFunctionError) as raised:
        outputs(Gives(does), table(("a", 1, 7), ("b", 1, 8), ("a", 2, 9))).result()
    for part in (rule, f"got {value}", "Gives.process_batch", "2 keys, 3 rows"):
        assert part in str(raised.value)


def test_what_a_function_raises() -> None:
    with pytest.raises(FunctionFailedError, match=r"Gives.process_batch, at .*: ZeroDivisionError"):
        outputs(Gives(lambda _: 1 / 0), table(("a", 1, 7))).result()
    with pytest.raises(FunctionFailedError, match=r"Gives.on_timers, at .* has no on_timers"):
        outputs(Gives(gives(event_timers=(ONE, ONE))), table(("a", 1, 7))).result()


class Declares(Gives):
    side_outputs: ClassVar = {}

    def __init__(self, **named: Any) -> None:
        vars(self).update(named)


@pytest.mark.parametrize(
    ("named", "text"),
    [
        ({"state": [1]}, "state maps names of columns to Arrow types"),
        ({"state": {"n": int}}, "state maps names of columns to Arrow types"),
        (
            {"state": {"n": gw.functions.ValueStateDescriptor(LONG)}},
            "maps names of columns to Arrow types",
        ),
        ({"side_outputs": {"a/b": pa.schema([])}}, "names a folder"),
    ],
)
def test_what_is_declared_wrongly(named: Any, text: str) -> None:
    with pytest.raises(QueryError, match=text):
        outputs(Declares(**named), table(), columns=())


def test_state_that_was_not_declared() -> None:
    found = outputs(Declares(state={}, _does=gives(state=numbers(1))), table(("a", 1, 7)))
    with pytest.raises(InvalidFunctionError, match="must declare its state; it declared none"):
        found.result()


def test_timers_are_forgotten_once_over() -> None:
    """A key may have many; those that are over or were moved take no room for good."""
    timers, codes = TimerArrays(), np.repeat(np.arange(1_000), 200)
    for begin in (0, 200_000):
        times = begin + np.arange(len(codes)) % 200
        timers.set(codes, times)
        timers.set(codes[:500], times[:500])
        timers.delete(codes[::2], times[::2])
        assert len(timers) == 100_000
        due, at = timers.pop_due(begin + 99)
        assert due.tolist() == np.repeat(np.arange(1_000), 50).tolist()
        assert at.tolist() == (begin + np.tile(np.arange(1, 100, 2), 1_000)).tolist()
        timers.pop_due(LONG_MAX)
    assert len(timers) == 0
    keys = np.arange(1_000)
    for time in range(200):
        timers.delete(keys, keys + time)
        timers.set(keys, keys + time + 1)
    assert len(timers) == 1_000
    assert len(timers._is_set) < 1 << 17
