"""An operator that is put away in a store after every call gives what one does that is not."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, reject

import gpu_windows as gw
from gpu_windows.errors import (
    InvalidFunctionError,
)
from gpu_windows.functions.process import Process
from gpu_windows.operators.build import restored_operator
from gpu_windows.operators.state.store import MemoryStore
from gpu_windows.options import Options
from gpu_windows.planning.plan import Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.query.base import Query
from gpu_windows.triggers import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeTrigger,
    Trigger,
)
from gpu_windows.windows import (
    EventTimeSessionWindows,
    TumblingEventTimeWindows,
)
from tests.datastream import custom_parts as custom
from tests.examples import examples
from tests.operators.panes.queries import inputs as machine_inputs
from tests.operators.panes.queries import queries
from tests.operators.slices.tasks import with_arrival
from tests.operators.state.put_away import Named, Step, cut, put_away_after_each, rows, take
from tests.query.queries import SCHEMA, query


@examples(150)
@given(queries(), machine_inputs())
def test_machines(made: Query, steps: list[Named]) -> None:
    planned = plan(made, bounded=False)
    if planned.strategy is not Strategy.BUFFER:
        reject()
    assert not any(put_away_after_each(planned, steps).values())


@examples(60)
@given(queries(), machine_inputs())
def test_machines_in_many_blocks(made: Query, steps: list[Named]) -> None:
    planned = plan(made, bounded=False)
    if planned.strategy is not Strategy.BUFFER:
        reject()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpu_windows.operators.state.runs._BLOCK_BYTES", 1)  # an entry a block
        patch.setattr("gpu_windows.operators.state.tiers.TOGETHER", 2)
        patch.setattr("gpu_windows.operators.state.timer_lists._BLOCK", 2)
        assert not any(put_away_after_each(planned, steps).values())


@examples(100)
@given(queries(), machine_inputs())
def test_the_reference(made: Query, steps: list[Named]) -> None:
    planned = plan(replace(made, options=Options(engine="reference")), bounded=False)
    assert not any(put_away_after_each(planned, steps).values())


@pytest.mark.parametrize("name", sorted(set(custom.QUERIES) - set(custom.COMPILED)))
def test_user_code(name: str) -> None:
    made = custom.outputs(custom.table(), name).plan.query
    assert not any(put_away_after_each(plan(made, bounded=False), cut(made)).values())


def test_state_of_a_key() -> None:
    """The state of a key has no end, as in Flink; that of a window ends with it."""
    output = pa.schema([("pause", pa.float64()), ("rows", pa.int64()), ("before", pa.int64())])
    process = custom.windowed(TumblingEventTimeWindows(60 * custom.SECOND)).outputs(
        Process(custom.Longest(), ("value", "ts"), output)
    )
    made = plan(process.plan.query, bounded=False)
    left = put_away_after_each(made, cut(made.query))
    assert not any(left.values())


def test_user_code_keeps_what_it_declared() -> None:
    class Wrong(custom.GeometricMean):
        accumulator = pa.struct([("product", pa.string()), ("count", pa.int64())])

    made = custom.windowed(TumblingEventTimeWindows(60 * custom.SECOND)).outputs(
        mean=gw.user_aggregate(Wrong(), "value")
    )
    planned = plan(made.plan.query, bounded=False)
    with pytest.raises(InvalidFunctionError, match="types that it declared"):
        put_away_after_each(planned, cut(planned.query))


class Watched(MemoryStore):
    """A store that notes what is read and written."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[str, str, int]] = set()

    def read(self, kind: str, bucket: int) -> bytes | None:
        self.seen.add(("read", kind, bucket))
        return super().read(kind, bucket)

    def write(self, kind: str, bucket: int, blob: bytes, *, held: int | None = None) -> None:
        self.seen.add(("write", kind, bucket))
        super().write(kind, bucket, blob, held=held)


def test_a_call_reads_and_writes_the_keys_that_it_touches() -> None:
    made = query(TumblingEventTimeWindows(10), trigger=CountTrigger(100), allowed_lateness=5)
    planned, store = plan(made, bounded=False), Watched()

    def call(*steps: Step) -> tuple[int, int]:
        """Return how many blocks of windows were read, and how many written."""
        store.seen.clear()
        operator = restored_operator(planned, store)
        for step in steps:
            take(operator, step)
        operator.save()
        found = [how for how, kind, _ in store.seen if kind == "windows"]
        return found.count("read"), found.count("write")

    keys = [f"k{i}" for i in range(40_000)]
    named = [{"key": key, "part": 1, "ts": 3, "i": 1} for key in keys]
    many = with_arrival(pa.Table.from_pylist(named, schema=SCHEMA))
    read, blocks = call(many)
    assert (read, blocks > 20) == (0, True)
    assert call(many.slice(0, 1)) == (1, 1)
    assert call(many.slice(7, 3)) == (4, 1)  # one of the call before, which had another key
    assert call(8) == (0, 0)
    assert call(rows(25)) == (3, 1)  # no run knows the key: a block of each
    read, written = call(14)
    assert (read >= blocks, written) == (True, 1)  # of the only window that is left


@pytest.mark.parametrize("trigger", [None, CountTrigger(7), ContinuousEventTimeTrigger(50)])
def test_an_open_session_does_not_grow_with_its_rows(trigger: Trigger | None) -> None:
    assigner = EventTimeSessionWindows(1_000)
    numbers = {"n": gw.count(), "mean": gw.mean("i"), "spread": gw.stddev("i"), "top": gw.max("i")}
    trigger = trigger or EventTimeTrigger()
    made = query(assigner, trigger=trigger, aggregates=numbers, allowed_lateness=5)
    planned, store, sizes = plan(made, bounded=False), MemoryStore(), []
    for number in range(24):
        operator = restored_operator(planned, store)
        take(operator, rows(*range(100 * number, 100 * number + 100)))
        take(operator, 100 * number)
        assert operator.state_size()["rows"] == 0
        operator.save()
        sizes.append(sum(map(len, store.blobs.values())))
    assert max(sizes[8:]) < max(sizes[:8]) + 100  # eight runs, then one
