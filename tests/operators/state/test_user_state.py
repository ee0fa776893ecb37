"""State of user code in a store, by key: it goes on as if it had never been put away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.process import Process
from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.keyed.stored import KEYED
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.planning.query import Query
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.windows import (
    EventTimeSessionWindows,
    GlobalWindows,
    TumblingEventTimeWindows,
)
from tests.datastream import custom_parts as custom
from tests.examples import examples
from tests.operators.panes.queries import WITH_GAP, assigners, inputs, queries, run
from tests.operators.slices.tasks import with_arrival
from tests.operators.state.counting import Counting
from tests.operators.state.put_away import Named, cut, put_away_after_each
from tests.operators.state.tight import with_small_blocks
from tests.planning.queries import query

ENDS = ("watermark", LONG_MAX)


class Restless(gw.functions.Trigger):
    """Sets timers at round times, so that those of several keys meet; takes some back in timers."""

    uses_processing_time = True
    state: ClassVar = {"fired": pa.int64()}
    columns: ClassVar = ("i",)

    def on_element(
        self, row: Mapping[str, Any], timestamp: int, window: Any, context: gw.typing.TriggerContext
    ) -> gw.functions.TriggerResult:
        round_time = timestamp // 10 * 10
        context.register_event_time_timer(round_time + 20)
        context.register_event_time_timer(round_time + 10)
        context.register_processing_time_timer(context.current_processing_time + 5)
        if (row["i"] or 0) % 5 == 0:
            context.delete_event_time_timer(window.max_timestamp)
        return gw.functions.TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: Any, context: gw.typing.TriggerContext
    ) -> gw.functions.TriggerResult:
        fired = context.get("fired", 0)
        context.put("fired", fired + 1)
        context.delete_event_time_timer(time + 10)
        if fired < 3 and time < LONG_MAX - 30:
            context.register_event_time_timer(time + 20)
            context.register_event_time_timer(time + 30 - 10 * (fired % 2))
        return (
            gw.functions.TriggerResult.FIRE_AND_PURGE
            if fired == 2
            else gw.functions.TriggerResult.FIRE
        )

    def on_processing_time(
        self, time: int, window: Any, context: gw.typing.TriggerContext
    ) -> gw.functions.TriggerResult:
        later = context.current_watermark // 10 * 10 + 20
        context.register_event_time_timer(min(later, LONG_MAX))
        return gw.functions.TriggerResult.FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, context: Any) -> None:
        context.merge("fired", max)
        context.register_event_time_timer(window.max_timestamp)

    def clear(self, window: Any, context: gw.typing.TriggerContext) -> None:
        context.remove("fired")


class Kept(gw.functions.ProcessWindowFunction):
    """The number of rows, and what is kept of the key."""

    key_state: ClassVar = {"rows": pa.list_(pa.int64())}
    output = pa.schema([("n", pa.int64()), ("rows", pa.list_(pa.int64()))])

    def process(
        self, key: Mapping[str, Any], context: gw.typing.ProcessContext, rows: pa.Table
    ) -> Iterable[Mapping[str, object]]:
        seen = [*context.key_state.get("rows", []), len(rows)][-3:]
        context.key_state.put("rows", seen)
        yield {"n": len(rows), "rows": seen}

    def clear(self, context: gw.typing.ProcessContext) -> None:
        if len(context.key_state.get("rows", [])) == 3:
            context.key_state.remove("rows")


class KeptOfWindows(Kept):
    """The same, and how often the function was called for the window."""

    window_state: ClassVar = {"calls": pa.int64()}

    def process(
        self, key: Mapping[str, Any], context: gw.typing.ProcessContext, rows: pa.Table
    ) -> Iterable[Mapping[str, object]]:
        calls = context.window_state.get("calls", 0)
        context.window_state.put("calls", calls + 1)
        for row in super().process(key, context, rows):
            yield {**row, "n": calls}

    def clear(self, context: gw.typing.ProcessContext) -> None:
        super().clear(context)
        context.window_state.remove("calls")


def made(assigner: Any, **changes: Any) -> Plan:
    """Plan a query with a trigger, and a function, of the user's."""
    kept = Kept() if isinstance(assigner, gw.functions.MergingWindowAssigner) else KeptOfWindows()
    function = Process(kept, ("i",), Kept.output)
    asked = query(assigner, WITH_GAP, trigger=Restless(), function=function, **changes)
    return plan(asked, bounded=False)


def goes_on(planned: Plan, steps: list[Named]) -> None:
    """Compare with an operator that is never put away: also the order, and what is held."""
    store, whole = Counting(), build_operator(planned)
    for step in steps:
        operator = restore_operator(planned, store)
        (wanted,), (got,) = run(whole, [step]), run(operator, [step])
        operator.save()
        assert got == wanted
        size = operator.state_size()
        assert restore_operator(planned, store).state_size() == size == whole.state_size()


KEYS = st.sampled_from([("key", "part"), ("f",), ("d", "b"), ("day", "small"), ("text",)])


@examples(100)
@given(assigners(), inputs(), KEYS, st.sampled_from([0, 5, 40]))
def test_timers_of_several_keys(
    assigner: Any, steps: list[Named], keys: tuple[str, ...], lateness: int
) -> None:
    late = lateness if assigner.is_event_time else 0
    goes_on(made(assigner, keys=keys, allowed_lateness=late), steps)


@examples(60)
@given(assigners(), inputs(), st.sampled_from([1, 2]))
def test_keys_of_one_hash_in_many_blocks(assigner: Any, steps: list[Named], hashes: int) -> None:
    found = KeyEncoder.hashes
    with pytest.MonkeyPatch.context() as patch, with_small_blocks():
        patch.setattr(KeyEncoder, "hashes", lambda encoder: found(encoder) % hashes)
        goes_on(made(assigner), steps)


@examples(100)
@given(queries(), inputs())
def test_the_reference(asked: Query, steps: list[Named]) -> None:
    planned = plan(replace(asked, options=Options(engine="reference")), bounded=False)
    assert not any(put_away_after_each(planned, steps, in_order=True).values())


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (pa.decimal128(30, 2), [Decimal("1e25"), Decimal("0.25"), None]),
        (pa.float64(), [float("nan"), -0.0, 0.0]),
        (pa.timestamp("ns", "Europe/Berlin"), [2**62, -1, None]),
        (pa.date32(), [0, -1, None]),
        (pa.binary(), [b"", b"\xff\x00", None]),
        (pa.bool_(), [True, False, None]),
        (
            pa.struct([pa.field("a", pa.string()), pa.field("b", pa.float64(), nullable=False)]),
            [None, {"a": None, "b": -0.0}, {"a": "x", "b": float("nan")}],
        ),
    ],
    ids=str,
)
def test_keys_of_every_type(dtype: pa.DataType, values: list[object]) -> None:
    schema = pa.schema([("key", dtype), ("ts", pa.int64()), ("i", pa.int64())])
    planned = plan(
        query(
            TumblingEventTimeWindows(30),
            schema,
            keys=("key",),
            aggregates={},
            trigger=Restless(),
            function=Process(Kept(), ("i",), Kept.output),
        ),
        bounded=False,
    )

    def rows(*times: int) -> pa.Table:
        columns = [pa.array([values[ts % 3] for ts in times], dtype), [*times], [*times]]
        return with_arrival(pa.table(columns, schema=schema))

    steps: list[Named] = [("rows", rows(*range(12))), ("watermark", 9), ("processing_time", 4)]
    steps += [("rows", rows(20, 21, 22, 1)), ("watermark", 25), ("processing_time", 9), ENDS]
    store, whole, numbers = MemoryLog(), build_operator(planned), 0
    for step in steps:
        operator = restore_operator(planned, store)
        wanted, got = [
            [[*each.results.to_pydict().values()][1:] for each in taken(which, step)]
            for which in (whole, operator)
        ]
        operator.save()
        assert got == wanted
        numbers += sum(len(each[0]) for each in got)
    assert numbers > 6


def taken(operator: Any, step: Named) -> list[Any]:
    named = {"rows": "process", "watermark": "advance_watermark"}
    return [*getattr(operator, named.get(step[0], "advance_processing_time"))(step[1])]


@pytest.mark.parametrize("name", sorted(set(custom.QUERIES) - set(custom.COMPILED)))
def test_user_code(name: str) -> None:
    asked = custom.outputs(custom.table(), name).plan.query
    left = put_away_after_each(plan(asked, bounded=False), cut(asked), in_order=True)
    assert not any(left.values())


def test_state_of_a_key() -> None:
    """The state of a key has no end, as in Flink; that of a window ends with it."""
    output = pa.schema([("pause", pa.float64()), ("rows", pa.int64()), ("before", pa.int64())])
    process = (
        custom.windowed(TumblingEventTimeWindows(60 * custom.SECOND))
        .with_outputs()
        .process(custom.Longest(), ("value", "ts"), output=output)
    )
    planned = plan(process.plan.query, bounded=False)
    left = put_away_after_each(planned, cut(planned.query), in_order=True)
    assert not any(left.values())


def test_user_code_keeps_what_it_declared() -> None:
    class Wrong(custom.GeometricMean):
        accumulator = pa.struct([("product", pa.string()), ("count", pa.int64())])

    asked = (
        custom.windowed(TumblingEventTimeWindows(60 * custom.SECOND))
        .with_outputs()
        .aggregate(mean=gw.user_aggregate(Wrong(), "value"))
    )
    planned = plan(asked.plan.query, bounded=False)
    with pytest.raises(InvalidFunctionError, match="must have its declared types"):
        put_away_after_each(planned, cut(planned.query))


def test_types_may_be_declared_with_other_nulls_when_a_query_starts_again() -> None:
    def declared(*, nullable: bool) -> Plan:
        class Mean(custom.GeometricMean):
            accumulator = pa.struct(
                [
                    pa.field("product", pa.float64(), nullable=nullable),
                    pa.field("count", pa.int64(), nullable=nullable),
                ]
            )

        asked = (
            custom.windowed(TumblingEventTimeWindows(60 * custom.SECOND))
            .with_outputs()
            .aggregate(mean=gw.user_aggregate(Mean(), "value"))
        )
        return plan(asked.plan.query, bounded=False)

    plans = [declared(nullable=nullable) for nullable in (True, False)]
    steps, store = cut(plans[0].query), MemoryLog()
    whole = run(build_operator(plans[0]), steps)
    for number, (step, wanted) in enumerate(zip(steps, whole, strict=True)):
        operator = restore_operator(plans[number % 2], store)
        assert [*run(operator, [step])] == [wanted]
        operator.save()


# ---- what a call costs


def rows_of(keys: Iterable[int], ts: int) -> pa.Table:
    named = [{"key": f"k{key}", "part": 1, "ts": ts, "i": key} for key in keys]
    return with_arrival(pa.Table.from_pylist(named, schema=WITH_GAP))


def called(planned: Plan, store: Counting, *steps: Named) -> dict[str, int]:
    """Return what a call reads, and what is written once it is over."""
    operator = restore_operator(planned, store)
    store.forget_counts()
    for _ in run(operator, [*steps]):
        pass
    operator.save()
    reads, bytes_read = store.counts["reads"], store.counts["bytes_read"]
    store.reopen()
    written = store.counts["bytes_written"]
    return {"reads": reads, "bytes_read": bytes_read, "bytes_written": written}


@pytest.mark.thorough
@pytest.mark.parametrize("assigner", [TumblingEventTimeWindows(100), EventTimeSessionWindows(100)])
def test_a_call_reads_and_writes_what_it_touches(assigner: Any) -> None:
    function = Process(Kept(), ("i",), Kept.output)
    planned = plan(query(assigner, WITH_GAP, function=function), bounded=False)
    store, alone = Counting(), Counting()
    called(planned, store, ("rows", rows_of(range(20_000), 1)))
    whole = sum(run.size for run in store.runs(KEYED))
    touched = called(planned, alone, ("rows", rows_of(range(5), 2)))["bytes_written"]
    keys = np.random.default_rng(2)
    for number in range(20):
        some = keys.choice(20_000, 5, replace=False).tolist()
        asked = called(planned, store, ("rows", rows_of(some, 2 + number)))
        assert asked["bytes_read"] < 5 * 16_000 + 64_000 < whole
        assert asked["bytes_written"] < 4 * touched + 10_000
    nothing = called(planned, store, ("watermark", 50))
    assert nothing["bytes_read"] + nothing["bytes_written"] < 20_000
    called(planned, store, ENDS)
    assert not any(restore_operator(planned, store).state_size().values())


def test_only_keys_that_are_due_are_read() -> None:
    planned, store = made(TumblingEventTimeWindows(1_000)), Counting()
    called(planned, store, ("rows", rows_of(range(3_000), 400)))
    called(planned, store, ("rows", rows_of(range(5_000, 5_003), 5)))
    blocks = sum(len(store.block_index(run)) for run in store.runs(KEYED))
    asked = called(planned, store, ("watermark", 12))
    assert blocks > 10
    assert asked["reads"] <= 4 + 3  # times, directories, blocks that follow one another
    last = restore_operator(planned, store)
    assert last.next_timers() == (30, 5)


def test_a_key_with_many_timers() -> None:
    class Every(Restless):
        def on_element(
            self,
            row: Mapping[str, Any],
            timestamp: int,
            window: Any,
            context: gw.typing.TriggerContext,
        ) -> gw.functions.TriggerResult:
            for time in range(20_000):
                context.register_event_time_timer(1_000 + time)
            return gw.functions.TriggerResult.CONTINUE

    asked = query(GlobalWindows(), trigger=Every(), aggregates={"n": gw.count()})
    planned, store = plan(asked, bounded=False), Counting()
    called(planned, store, ("rows", rows_of([0], 1)))
    assert len(store.runs(KEYED)) == 1
    assert restore_operator(planned, store).next_timers() == (1_000, None)
    called(planned, store, ("watermark", 1_004))
    assert restore_operator(planned, store).next_timers() == (1_005, None)
    assert restore_operator(planned, store).state_size()["event_timers"] > 19_900


def test_nothing_is_left_of_keys_that_are_gone() -> None:
    planned = plan(
        replace(
            query(TumblingEventTimeWindows(10), aggregates={"n": gw.count()}),
            options=Options(engine="reference"),
        ),
        bounded=False,
    )
    store = Counting()
    for number in range(5):
        called(planned, store, ("rows", rows_of(range(100 * number, 100 * number + 90), 5)))
    called(planned, store, ("watermark", 8))
    assert len(store.runs(KEYED)) == 5
    called(planned, store, ("watermark", 9))
    assert store.table_names == []
