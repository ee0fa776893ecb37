"""Keys of one column, of every kind, put away after each call; null and 0 beside others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.plan import ARRIVAL, Plan
from gpu_windows.planning.planner import plan
from gpu_windows.planning.query import Query
from gpu_windows.rules import LONG_MAX
from tests.operators.state.put_away import Step, take

#: Three keys of each type, of which mostly two have one hash.
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int64(), [None, 0, 7]),
    "bool": (pa.bool_(), [None, False, True]),
    "float": (pa.float64(), [None, 0.0, float("nan")]),
    "text": (pa.string(), [None, "", "a"]),
    "struct": (pa.struct([("a", pa.int64())]), [None, {"a": 0}, {"a": None}]),
}
WINDOWS: dict[str, Callable[[gw.typing.KeyedStream], Any]] = {
    "count": lambda keyed: keyed.count_window(3),
    "sliding count": lambda keyed: keyed.count_window(3, 2),
    "tumbling": lambda keyed: keyed.window(gw.TumblingEventTimeWindows.of("4 s")),
    "session": lambda keyed: keyed.window(gw.EventTimeSessionWindows.with_gap("2 s")),
}
#: Which keys come in which call.
CALLS = [[0, 0], [2], [1, 1], [2, 2], [0, 1], [2, 0, 1, 1], [0], [1, 2]]


def planned(dtype: pa.DataType, window: str) -> Plan:
    schema = pa.schema([("k", dtype), ("ts", pa.timestamp("us", "UTC")), ("v", pa.int64())])
    timed = gw.stream(schema.empty_table()).event_time(
        "ts", gw.WatermarkStrategy.for_monotonous_timestamps()
    )
    made = WINDOWS[window](timed.key_by("k")).with_outputs().aggregate(n=gw.count(), s=gw.sum("v"))
    query: Query = made.plan.query
    return plan(query, bounded=False, spark=True)


def rows(made: Plan, dtype: pa.DataType, keys: list[Any], first: int) -> pa.Table:
    """Return a row a second."""
    numbers = list(range(first, first + len(keys)))
    columns = {
        "k": pa.array(keys, dtype),
        made.query.time: pa.array([number * 1_000_000 for number in numbers]),
        "v": pa.array(numbers),
        ARRIVAL: pa.array(numbers),
    }
    order = [name for name in made.order if name == ARRIVAL]
    return pa.table({name: columns[name] for name in [*made.input_columns, *order]})


def results(operator: Any, *steps: Step) -> list[str]:
    found = [row for step in steps for e in take(operator, step) for row in e.results.to_pylist()]
    return sorted(map(repr, found))


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_one_column(kind: str, window: str) -> None:
    dtype, keys = KEYS[kind]
    made, store, fired, seen = planned(dtype, window), MemoryLog(), 0, 0
    whole = build_operator(made)
    for call in [*CALLS, None]:
        step: Step = LONG_MAX
        if call is not None:
            step, seen = rows(made, dtype, [keys[i] for i in call], seen), seen + len(call)
        steps = [step] if call is None else [step, (seen - 1) * 1_000_000]
        operator = restore_operator(made, store)
        got = results(operator, *steps)
        operator.save()
        assert got == results(whole, *steps)
        fired += len(got)
    assert fired >= 3


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("is_nullable_first", [False, True])
def test_what_may_be_null_may_change_between_starts(window: str, is_nullable_first: bool) -> None:
    """Nullability is no fact of a query, so Spark may tell another one at the next start."""
    dtypes = [
        pa.struct([pa.field("a", pa.int64(), nullable)])
        for nullable in (is_nullable_first, not is_nullable_first)
    ]
    store, found, seen = MemoryLog(), [], 0
    whole = build_operator(planned(dtypes[0], window))
    wanted: list[str] = []
    for number in range(6):
        dtype = dtypes[number >= 2]
        made, keys = planned(dtype, window), [{"a": 0}, {"a": 1}, {"a": 0}]
        step = LONG_MAX if number == 5 else rows(made, dtype, keys, seen)
        seen += 3
        operator = restore_operator(made, store)
        found += results(operator, step)
        operator.save()
        same = LONG_MAX if number == 5 else rows(made, dtypes[0], keys, seen - 3)
        wanted += results(whole, same)
    assert sorted(found) == sorted(wanted)
    assert found
