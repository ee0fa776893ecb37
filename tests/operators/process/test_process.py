"""Process functions over single rows: what they see, what becomes of it, what is refused."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.errors import (
    FunctionFailedError,
    InvalidDurationError,
    InvalidFunctionError,
    QueryError,
)
from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.operators.process.base import TIMERS_LEFT, FunctionOperator
from gpu_windows.operators.process.output import ProcessOutput
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from tests.examples import examples
from tests.operators.process.functions import LONG, TEXT, Everything, outputs, table
from tests.operators.state.put_away import Named, put_away_after_each

TIMES = st.integers(-20, 60)


@st.composite
def steps(draw: st.DrawFn) -> list[Named]:
    """Rows, watermarks and times of the clock, which go forward."""
    found: list[Named] = []
    watermark = now = -30
    for _ in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(("rows", "rows", "watermark", "processing_time")))
        if kind == "rows":
            key, value = st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 30))
            rows = draw(st.lists(st.tuples(key, TIMES, value), max_size=5))
            found.append((kind, table(*rows)))
        elif kind == "watermark":
            watermark += draw(st.integers(0, 30))
            found.append((kind, watermark))
        else:
            now = max(now, 0) + draw(st.integers(0, 8))
            found.append((kind, now))
    return [*found, ("watermark", LONG_MAX)]


TTLS = (None, gw.functions.StateTtlConfig(3), gw.functions.StateTtlConfig(5, update_on_read=True))

#: The entry m2 is over when it is written again, so it comes after m1, wherever it was kept.
WRITTEN_AGAIN: list[Named] = [
    ("processing_time", 0),
    ("rows", table(("a", 1, 2))),
    ("processing_time", 2),
    ("rows", table(("a", 1, 4))),
    ("processing_time", 3),
    ("rows", table(("a", 1, 5))),
]


@examples(120)
@given(steps(), st.sampled_from(TTLS))
@example(WRITTEN_AGAIN, TTLS[1])
def test_put_away_after_each_call(
    found: list[Named], ttl: gw.functions.StateTtlConfig | None
) -> None:
    query = outputs(Everything(ttl), table()).plan.query
    planned = plan(query, bounded=False)
    put_away_after_each(planned, found)


class Counted(gw.functions.KeyedProcessFunction):
    """Numbers the rows of a key, and tells of opening and closing."""

    output = pa.schema([("n", LONG)])
    state: ClassVar = {"n": gw.functions.ValueStateDescriptor(LONG)}
    told: ClassVar[list[str]] = []

    def open(self, context: gw.typing.OpenContext) -> None:
        self.told.append("open")
        self.n = context.state("n")

    def close(self) -> None:
        self.told.append("close")

    def process_element(self, row: Any, context: gw.typing.KeyedContext) -> list[dict[str, Any]]:
        self.n.update(self.n.value(0) + 1)
        return [{"n": self.n.value()}]


def test_open_and_close_once() -> None:
    Counted.told.clear()
    found = outputs(Counted(), table(("a", 1, 1), ("b", 2, 1), ("a", 3, 1)), columns=())
    assert found.result().to_pylist() == [
        {"k": "a", "n": 1},
        {"k": "b", "n": 1},
        {"k": "a", "n": 2},
    ]
    assert Counted.told == ["open", "close"]


def test_operators_of_one_function_share_no_state() -> None:
    query = outputs(Counted(), table(), columns=()).plan.query
    one, other = (build_operator(plan(query, bounded=False)) for _ in range(2))
    rows = table(("a", 1, 1))

    def numbers(operator: Any) -> list[int]:
        return [n for e in operator.process(rows) for n in e.results["n"].to_pylist()]

    assert [numbers(one), numbers(other), numbers(one), numbers(other)] == [[1], [1], [2], [2]]


class AtEnd(gw.functions.KeyedProcessFunction):
    """Timers that set timers, until the end of input and beyond."""

    output = pa.schema([("at", LONG), ("watermark", LONG)])
    uses_processing_time = True

    def process_element(self, row: Any, context: gw.typing.KeyedContext) -> None:
        context.register_event_time_timer(row["v"])
        context.register_processing_time_timer(context.current_processing_time + 1)

    def on_timer(self, time: int, context: gw.typing.TimerContext) -> Iterator[dict[str, int]]:
        yield {"at": time, "watermark": context.current_watermark}
        if time < 12:
            context.register_event_time_timer(time + 4)


def test_timers_at_the_end_of_bounded_input() -> None:
    """They come in order of time, those too that timers set; those of the clock are counted."""
    found = outputs(AtEnd(), table(("a", 1, 5), ("b", 2, 3), ("a", 3, 5)))
    at = [(row["k"], row["at"]) for row in found.result().to_pylist()]
    assert at == [("b", 3), ("a", 5), ("b", 7), ("a", 9), ("b", 11), ("a", 13), ("b", 15)]
    assert set(found.result()["watermark"].to_pylist()) == {LONG_MAX}
    assert dict(found.metrics()["user"][0].as_py()) == {TIMERS_LEFT: 2}


def test_a_watermark_that_is_forgotten_begins_anew() -> None:
    """A timer that waits for the next one fires at a lower one than before."""
    planned, store = plan(outputs(AtEnd(), table()).plan.query, bounded=False), MemoryLog()
    operator = restore_operator(planned, store)
    for _ in (*operator.advance_watermark(20), *operator.process(table(("a", 1, 13)))):
        pass
    operator.save()
    again = restore_operator(planned, store)
    assert isinstance(again, FunctionOperator)

    def fired(watermark: int) -> list[tuple[int, int]]:
        emitted = again.advance_watermark(watermark)
        rows = [row for emission in emitted for row in emission.results.to_pylist()]
        return [(row["at"], row["watermark"]) for row in rows]

    assert fired(13) == []
    again.forget_watermark()
    assert [fired(12), fired(13), fired(14)] == [[], [(13, 13)], []]


def test_rows_without_time_are_given_back() -> None:
    found = outputs(Counted(), table(("a", 1, 1), ("a", None, 1), (None, 3, 1)), columns=())
    assert found.result().to_pylist() == [{"k": "a", "n": 1}, {"k": None, "n": 1}]
    assert found.rejected()["rejection_reason"].to_pylist() == ["null_timestamp"]
    assert found.metrics()["null_timestamp"].to_pylist() == [1]


class SeesTimes(gw.functions.KeyedProcessFunction):
    output = pa.schema([("at", LONG)])

    def process_element(self, row: Any, context: gw.typing.KeyedContext) -> list[dict[str, Any]]:
        return [{"at": context.timestamp}]


def test_rows_that_were_given_no_time() -> None:
    keyed = gw.stream(table(("a", 1, 1))).key_by("k")
    found = keyed.process(SeesTimes(), ["v"], output=SeesTimes.output)
    assert found.to_pylist() == [{"k": "a", "at": None}]


class Numbers(gw.functions.KeyedProcessFunction):
    """Gives whatever a test says."""

    output = pa.schema([("n", LONG)])
    state: ClassVar = {
        "n": gw.functions.ValueStateDescriptor(LONG),
        "l": gw.functions.ListStateDescriptor(LONG),
        "m": gw.functions.MapStateDescriptor(TEXT, LONG),
    }
    side_outputs: ClassVar = {"aside": pa.schema([("n", LONG)])}

    def __init__(self, does: Any) -> None:
        self._does = does

    def process_element(self, row: Any, context: gw.typing.KeyedContext) -> Any:
        return self._does(row, context)


def _timer(_: Any, context: gw.typing.KeyedContext) -> None:
    context.register_processing_time_timer(1)


@pytest.mark.parametrize(
    ("does", "error", "text"),
    [
        (lambda *_: 1 / 0, FunctionFailedError, "division by zero (test_process.py, line 2"),
        (lambda *_: pa.array(["a"], LONG), FunctionFailedError, "int64 (test_process.py, line 2"),
        (lambda *_: [{"m": 1}], InvalidFunctionError, "dicts of exactly n (in"),
        (lambda *_: [{"m": 1}], InvalidFunctionError, "), got {'m': 1} (column 'n')"),
        (lambda *_: [3], InvalidFunctionError, ", got 3"),
        (lambda *_: {"n": 1}, InvalidFunctionError, ", got {'n': 1}"),
        (lambda *_: {}, InvalidFunctionError, "a function must return rows: a list of dicts"),
        (lambda *_: 0, InvalidFunctionError, "a function must return rows: a list of dicts"),
        (_timer, InvalidFunctionError, "must declare uses_processing_time = True"),
        (lambda _, c: c.state("x"), InvalidFunctionError, "it declared l, m, n (in"),
        (lambda _, c: c.state("n").update("x"), InvalidFunctionError, ", got 'x'"),
        (lambda _, c: c.state("n").update(1.5), InvalidFunctionError, ", got 1.5"),
        (lambda _, c: c.state("n").update(1 << 63), InvalidFunctionError, "declared as int64"),
        (lambda _, c: c.state("l").add(None), InvalidFunctionError, "must not contain None"),
        (lambda _, c: c.state("m").put(3, 3), InvalidFunctionError, "declared as string"),
        (lambda _, c: c.output("b", {}), InvalidFunctionError, "it declared aside"),
        (lambda _, c: c.output("aside", {"m": 1}), InvalidFunctionError, ", got {'m': 1}"),
        (lambda _, c: c.register_event_time_timer(1.0), InvalidFunctionError, "got 1.0"),
        (lambda _, c: c.register_event_time_timer(1 << 63), InvalidFunctionError, "64 bits"),
    ],
)
def test_what_a_function_does_wrong(does: Any, error: type[Exception], text: str) -> None:
    """The error names the function, the key and the row."""
    with pytest.raises(error) as raised:
        outputs(Numbers(does), table(("a", 1, 7))).result()
    for part in (text, "Numbers.process_element", "key k='a'", "row {'v': 7}", ".py, line "):
        assert part in str(raised.value)


def test_a_result_of_another_type_is_refused() -> None:
    with pytest.raises(InvalidFunctionError, match=r"Numbers must return int64 \(.*, got 'x'.*'n'"):
        outputs(Numbers(lambda *_: [{"n": "x"}]), table(("a", 1, 7))).result()


def test_a_function_without_on_timer_says_so() -> None:
    def sets(_: Any, context: gw.typing.KeyedContext) -> None:
        context.register_event_time_timer(3)

    with pytest.raises(FunctionFailedError, match=r"at key k='a'.*has no on_timer"):
        outputs(Numbers(sets), table(("a", 1, 7))).result()


class Declares(Counted):
    side_outputs: ClassVar = {}

    def __init__(self, **named: Any) -> None:
        vars(self).update(named)


@pytest.mark.parametrize(
    ("named", "text"),
    [
        ({"state": [1]}, "state maps names to state descriptors"),
        ({"state": {"n": pa.int64()}}, "state maps names to state descriptors"),
        ({"state": {"n": gw.functions.ValueStateDescriptor(int)}}, "by Arrow types"),
        ({"state": {"n": gw.functions.ListStateDescriptor(LONG, ttl=3)}}, "a StateTtlConfig"),  # type: ignore[arg-type]
        ({"state": {"n": gw.functions.ReducingStateDescriptor(3, LONG)}}, "function of two values"),  # type: ignore[arg-type]
        ({"state": {"n": gw.functions.AggregatingStateDescriptor(3)}}, "an AggregateFunction"),  # type: ignore[arg-type]
        ({"side_outputs": {"a": {"n": LONG}}}, "maps tags to pyarrow schemas"),
        ({"side_outputs": {"a/b": pa.schema([])}}, "names a folder"),
        ({"side_outputs": {"a": pa.schema([("k", LONG)])}}, "k"),
    ],
)
def test_what_is_declared_wrongly(named: Any, text: str) -> None:
    with pytest.raises(QueryError, match=text):
        outputs(Declares(**named), table(), columns=())


def test_misuse_of_the_api() -> None:
    keyed = gw.stream(table()).event_time("ts", gw.WatermarkStrategy()).key_by("k")
    with pytest.raises(QueryError, match="takes a KeyedProcessFunction"):
        keyed.process(Counted, output=Counted.output)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="is a pyarrow"):
        keyed.process(Counted(), output={"n": LONG})
    with pytest.raises(QueryError, match="must have different names"):
        keyed.process(Counted(), output=pa.schema([("k", LONG)]))
    with pytest.raises(QueryError, match="one of odd, timers, got 'even'"):
        outputs(Everything(), table()).side("even")
    with pytest.raises(QueryError, match="one of none"):
        outputs(Counted(), table(), columns=()).side("even")
    with pytest.raises(QueryError, match="options are"):
        outputs(Counted(), table(), columns=(), colour="red")


def test_operators_that_take_turns_leave_the_garbage_collector_as_it_was() -> None:
    before = gc.get_threshold()
    many = table(*(("a", time, None) for time in range(200)))
    planned = plan(outputs(Counted(), table(), columns=()).plan.query, bounded=False)

    def begun() -> Iterator[Any]:
        operator = build_operator(planned)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ProcessOutput, "is_full", True)
            emissions = operator.process(many)
            next(emissions)
        return emissions

    try:
        for order in ((0, 1), (1, 0)):
            two = [begun(), begun()]
            assert gc.get_threshold()[0] > before[0]
            for _ in two[order[0]]:
                pass
            assert gc.get_threshold()[0] > before[0]
            two[order[1]].close()  # type: ignore[attr-defined]
            assert gc.get_threshold() == before
    finally:
        gc.set_threshold(*before)


def test_what_is_declared_is_not_assigned() -> None:
    class Assigns(gw.functions.KeyedProcessFunction):
        def __init__(self, name: str) -> None:
            setattr(self, name, {})

        def process_element(self, row: Any, context: Any) -> None:
            pass

    for name in ("state", "side_outputs", "uses_processing_time"):
        text = rf"Assigns declares {name} in the class or as a property.*, got self.{name} = {{}}"
        with pytest.raises(InvalidFunctionError, match=text):
            Assigns(name)


def test_side_outputs() -> None:
    found = outputs(Everything(), table(("a", 1, 3), ("b", 2, 4), ("a", 3, 5)))
    assert found.side("odd").to_pylist() == [{"k": "a", "v": 3}, {"k": "a", "v": 5}]
    assert found.side("timers").column_names == ["k", "at"]
    assert "odd, timers" in found.explain()


def test_time_to_live_must_be_some_time() -> None:
    with pytest.raises(QueryError, match="must live for some time"):
        gw.functions.StateTtlConfig.of("0 seconds")
    for no_ticks in ("1 hour", timedelta(hours=1), 1.5, True):
        with pytest.raises(InvalidDurationError, match=r"write StateTtlConfig.of\('1 hour'\), got"):
            gw.functions.StateTtlConfig(no_ticks)  # type: ignore[arg-type]
    assert gw.functions.StateTtlConfig.of("1 second").time_to_live == 1_000_000


class Both(gw.functions.KeyedCoProcessFunction):
    """Tells of which side a row is, and its time."""

    output = pa.schema([("side", LONG), ("at", LONG)])

    def process_element1(self, row: Any, context: gw.typing.KeyedContext) -> list[dict[str, Any]]:
        return [{"side": 1, "at": context.timestamp}]

    def process_element2(self, row: Any, context: gw.typing.KeyedContext) -> list[dict[str, Any]]:
        return [{"side": 2, "at": context.timestamp}]


def test_connected_streams_that_were_given_no_time() -> None:
    left, right = (gw.stream(table(("a", at, 1))).key_by("k") for at in (1, 2))
    found = left.connect(right).with_outputs().process(Both(), output=Both.output)
    assert [(row["side"], row["at"]) for row in found.result().to_pylist()] == [
        (1, None),
        (2, None),
    ]
    assert len(found.rejected()) == 0
