"""Functions and evictors of windows: opened and closed, side outputs, counters, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.operators.build import build_operator
from tests.operators.asides import same_put_away, tags
from tests.operators.joins.rows import ENGINES, TUMBLING, keyed, table
from tests.planning.queries import rows_of

LONG = pa.int64()
ROWS = table([("a", 1, 1), ("a", 2, 5), ("b", 3, 7), ("b", 12, 1), ("a", 13, 8)])
#: Windows of `ROWS`: key, start, number of rows.
WINDOWS = [("a", 0, 2), ("a", 10, 1), ("b", 0, 1), ("b", 10, 1)]
VALUES = pa.schema([("v", LONG)])
COUNT = pa.schema([("n", LONG)])
NO_NUMBER: Any = "x"


class Told:
    """Notes when it is opened and closed."""

    told: list[Any]

    def __init__(self) -> None:
        self.told = []

    def open(self, context: gw.typing.RuntimeContext) -> None:
        self.told.append(context.keys)

    def close(self) -> None:
        self.told.append("close")


class Windowed(Told, gw.functions.ProcessWindowFunction):
    """Counts rows; those above 4 go aside."""

    side_outputs: ClassVar = {"large": VALUES, "dropped": VALUES}

    def process(self, key: Any, context: gw.typing.ProcessContext, rows: Any) -> Iterator[Any]:
        assert self.told == [("k",)]
        for value in rows["v"].to_pylist():
            if value > 4:
                context.output("large", {"v": value})
        context.count("windows")
        yield {"n": len(rows)}

    def clear(self, context: Any) -> None:
        context.output("dropped", {"v": context.window.start})


class Many(Told, gw.functions.VectorWindowFunction):
    """The same for many windows."""

    side_outputs: ClassVar = {"large": VALUES}

    def process(self, batch: gw.typing.WindowBatch) -> gw.functions.VectorResult:
        assert self.told == [("k",)]
        values = batch.rows["v"].to_numpy()
        large = values > 4
        return gw.functions.VectorResult(
            rows=pa.table({"n": np.diff(batch.offsets)}),
            sides={"large": (pa.table({"v": values[large]}), batch.places[large])},
            counts={"windows": len(batch)},
        )


class Both(Told, gw.functions.CoGroupFunction):
    """Counts the rows of the left side; those above 4 go aside."""

    side_outputs: ClassVar = {"large": VALUES}

    def co_group(
        self, key: Any, context: gw.typing.WindowContext, left: Any, right: Any
    ) -> Iterator[Any]:
        assert self.told == [("k",)]
        assert len(right) == 0
        for value in left["v"].to_pylist():
            if value > 4:
                context.output("large", {"v": value})
        context.count("windows", 1)
        yield {"n": len(left)}


class ManyBoth(Told, gw.functions.VectorCoGroupFunction):
    """The same for many windows."""

    side_outputs: ClassVar = {"large": VALUES}

    def co_group(self, batch: gw.typing.CoGroupBatch) -> gw.functions.VectorResult:
        one = gw.typing.WindowBatch(batch.windows, batch.left, batch.left_offsets)
        return Many.process(self, one)  # type: ignore[arg-type]


def outputs_of(function: Any, engine: Any, rows: Any = ROWS) -> gw.typing.Outputs:
    """Count the rows of windows by a function of any kind."""
    options = {"engine": engine, "device": "cpu"}
    if hasattr(function, "co_group"):
        windowed = keyed(rows).co_group(keyed(table([]))).window(TUMBLING).options(**options)
        return windowed.with_outputs().process(function, ["v"], ["v"], output=COUNT)
    return (
        keyed(rows)
        .window(TUMBLING)
        .options(**options)
        .with_outputs()
        .process(function, ["v"], output=COUNT)
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", [Windowed, Many, Both, ManyBoth])
def test_every_kind_of_window_function(kind: Any, engine: Any) -> None:
    function = kind()
    outputs = outputs_of(function, engine)
    found = outputs.result().select(["k", "window_start", "n"])
    assert rows_of(found) == sorted(WINDOWS)
    assert rows_of(outputs.side("large")) == [("a", 5), ("a", 8), ("b", 7)]
    assert dict(outputs.metrics()["user"][0].as_py()) == {"windows": 4}
    assert function.told == [("k",), "close"]
    assert "large" in outputs.explain()
    if kind is Windowed:
        dropped = rows_of(outputs.side("dropped"))
        assert dropped == [("a", 0), ("a", 10), ("b", 0), ("b", 10)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", [Windowed, Many, Both, ManyBoth])
def test_what_goes_aside_is_in_the_order_of_firing(kind: Any, engine: Any) -> None:
    """Not key by key."""
    rows = table([("a", 12, 6), ("b", 2, 7), ("a", 1, 8), ("b", 11, 9)])
    outputs = outputs_of(kind(), engine, rows)
    fired = outputs.result().column("k").to_pylist()
    assert sorted(fired[:2]) == sorted(fired[2:]) == ["a", "b"]
    found = outputs.side("large").to_pylist()
    value = {("a", 0): 8, ("b", 0): 7, ("a", 10): 6, ("b", 10): 9}
    starts = outputs.result().column("window_start").to_pylist()
    assert found == [{"k": k, "v": value[k, start]} for k, start in zip(fired, starts, strict=True)]
    assert starts == [0, 0, 10, 10]


@pytest.mark.parametrize("kind", [Windowed, Many, Both, ManyBoth])
def test_put_away_after_each_call(kind: Any) -> None:
    for engine in ENGINES:
        found = same_put_away(outputs_of(kind(), engine))
        assert found.counts == {"fired": 4, "windows": 4}
        assert tags(found) >= {"", "large"}


class Newest(Told, gw.functions.Evictor):
    """Leaves the newest row; others go aside. After the function it counts."""

    side_outputs: ClassVar = {"evicted": VALUES}
    columns = ("v",)

    def evict_before(self, elements: Any, window: Any, context: gw.typing.EvictorContext) -> Any:
        for element in elements[:-1]:
            context.output("evicted", {"v": element.row["v"]})
        return elements[-1:]

    def evict_after(self, elements: Any, window: Any, context: gw.typing.EvictorContext) -> Any:
        context.count("left", len(elements))
        return elements


class AtEnd(Told, gw.functions.Trigger):
    """Fires at the end of a window."""

    def on_element(
        self, row: Any, timestamp: int, window: Any, context: Any
    ) -> gw.functions.TriggerResult:
        assert self.told == [("k",)]
        context.register_event_time_timer(window.max_timestamp)
        return gw.functions.TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, context: Any) -> gw.functions.TriggerResult:
        return gw.functions.TriggerResult.FIRE

    def clear(self, window: Any, context: Any) -> None:
        context.delete_event_time_timer(window.max_timestamp)


def test_evictors_and_triggers() -> None:
    function, evictor, trigger = Windowed(), Newest(), AtEnd()
    windowed = keyed(ROWS).window(TUMBLING).trigger(gw.PurgingTrigger.of(trigger)).evictor(evictor)
    outputs = windowed.with_outputs().process(function, ["v"], output=COUNT)
    assert set(outputs.result()["n"].to_pylist()) == {1}
    assert outputs.side("evicted").to_pylist() == [{"k": "a", "v": 1}]
    assert rows_of(outputs.side("large")) == [("a", 5), ("a", 8), ("b", 7)]
    assert dict(outputs.metrics()["user"][0].as_py()) == {"left": 4, "windows": 4}
    for part in (function, evictor, trigger):
        assert part.told == [("k",), "close"]


def test_an_evictor_of_aggregates() -> None:
    evictor = Newest()
    outputs = keyed(ROWS).window(TUMBLING).evictor(evictor).with_outputs().aggregate(n=gw.count())
    assert set(outputs.result()["n"].to_pylist()) == {1}
    assert outputs.side("evicted").to_pylist() == [{"k": "a", "v": 1}]
    trace = gw.trace_firings(outputs, ROWS)
    assert [each.row for each in trace.evictions] == [0]
    assert evictor.told == [("k",), "close"] * 2


def test_windows_of_all_rows() -> None:
    """Side outputs have no key then."""
    function = Windowed()
    timed = gw.stream(ROWS).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    function.open = lambda context: function.told.append(("k", *context.keys))  # type: ignore[method-assign]
    outputs = timed.window_all(TUMBLING).with_outputs().process(function, ["v"], output=COUNT)
    assert outputs.side("large").to_pylist() == [{"v": 5}, {"v": 7}, {"v": 8}]


def test_all_operators_of_a_process_share_what_is_open() -> None:
    function = Windowed()
    planned = outputs_of(function, "auto").plan
    first, second = build_operator(planned), build_operator(planned)
    first.close()
    second.close()
    assert function.told == [("k",), "close"]


class _Failing:
    """Does what it is told to."""

    side_outputs: ClassVar = {"large": VALUES}

    def __init__(self, act: Any) -> None:
        self._act = act


class Failing(_Failing, gw.functions.ProcessWindowFunction, gw.functions.CoGroupFunction):
    """Takes a window at a time."""

    def process(self, *given: Any) -> Any:
        return self._act(given[1] if len(given) > 1 else None)

    def co_group(self, key: Any, context: Any, left: Any, right: Any) -> Any:
        return self._act(context)


class FailingOnBatches(_Failing, gw.functions.VectorWindowFunction):
    """Takes many windows at once."""

    def process(self, *given: Any) -> Any:
        return self._act(given[1] if len(given) > 1 else None)


def divided(_: Any) -> Any:
    return [{"n": 1 // 0}]


def undeclared(context: Any) -> Any:
    context.output("small", {"v": 1})


def of_another_schema(context: Any) -> Any:
    context.output("large", {"w": 1})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (divided, errors.FunctionFailedError, "ZeroDivisionError"),
        (undeclared, errors.InvalidFunctionError, "must declare its side outputs.*got 'small'"),
        (
            of_another_schema,
            errors.InvalidFunctionError,
            "must give dicts of exactly v.*got {'w': 1}",
        ),
    ],
)
def test_errors_name_function_key_and_window(
    engine: Any, two: bool, act: Any, error: Any, text: str
) -> None:
    options = {"engine": engine, "device": "cpu"}
    if two:
        both = keyed(ROWS).co_group(keyed(ROWS)).window(TUMBLING).options(**options)
        outputs = both.with_outputs().process(Failing(act), ["v"], ["v"], output=COUNT)
    else:
        windowed = keyed(ROWS).window(TUMBLING).options(**options)
        outputs = windowed.with_outputs().process(Failing(act), ("v",), output=COUNT)
    with pytest.raises(error, match=text) as found:
        outputs.result()
    method = "co_group" if two else "process"
    assert f"in Failing.{method}, at key k='" in str(found.value)
    assert ", window 1970-01-01 00:00:00" in str(found.value).splitlines()[0]
    assert str(found.value).count("Failing.") == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_errors_name_a_batch(engine: Any) -> None:
    windowed = keyed(ROWS).window(TUMBLING).options(engine=engine, device="cpu")
    with pytest.raises(
        errors.FunctionFailedError, match=r"in FailingOnBatches, at a batch of . windows"
    ):
        windowed.process(FailingOnBatches(divided), ("v",), output=COUNT)


class Returns(gw.functions.VectorWindowFunction):
    side_outputs: ClassVar = {"large": VALUES}

    def __init__(self, found: Any) -> None:
        self._found = found

    def process(self, batch: gw.typing.WindowBatch) -> Any:
        return self._found


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (gw.functions.VectorResult(state=pa.table({})), "neither state nor timers.*got state"),
        (
            gw.functions.VectorResult(sides={"small": VALUES.empty_table()}),
            "must declare its side outputs",
        ),
        (
            gw.functions.VectorResult(sides={"large": pa.table({"v": ["x"]})}),
            "to the side output 'large',",
        ),
        (gw.functions.VectorResult(counts={"n": NO_NUMBER}), "must count by names and integers"),
        (None, "must return a pyarrow.Table"),
    ],
)
def test_results_of_batches_are_those_declared(found: Any, text: str) -> None:
    outputs = (
        keyed(ROWS.slice(0, 1))
        .window(TUMBLING)
        .with_outputs()
        .process(Returns(found), output=COUNT)
    )
    with pytest.raises(errors.InvalidFunctionError, match=text):
        outputs.result()


def test_nothing_is_a_result() -> None:
    outputs = (
        keyed(ROWS)
        .window(TUMBLING)
        .with_outputs()
        .process(Returns(gw.functions.VectorResult()), output=COUNT)
    )
    assert len(outputs.result()) == len(outputs.side("large")) == 0


class Fails(Newest):
    def evict_after(self, elements: Any, window: Any, context: gw.typing.EvictorContext) -> Any:
        raise ValueError("no")


def test_what_evictors_raise() -> None:
    outputs = keyed(ROWS).window(TUMBLING).evictor(Fails()).with_outputs().aggregate(n=gw.count())
    with pytest.raises(errors.FunctionFailedError, match=r"in Fails\.evict_after, at key k='.', w"):
        outputs.result()


class Wrong(gw.functions.ProcessWindowFunction):
    def __init__(self, **sides: Any) -> None:
        self._sides = sides

    @property
    def side_outputs(self) -> Any:
        return self._sides

    def process(self, key: Any, context: Any, rows: Any) -> Any:
        return ()


def test_what_is_refused() -> None:
    windowed = keyed(ROWS).window(TUMBLING)
    for sides, error, text in (
        ({"a/b": VALUES}, errors.InvalidFunctionError, "letters, digits"),
        ({"a": LONG}, errors.InvalidFunctionError, "maps tags to pyarrow schemas"),
        ({"a": pa.schema([("k", LONG)])}, errors.NameClashError, "'k'"),
    ):
        with pytest.raises(error, match=text):
            windowed.with_outputs().process(Wrong(**sides), output=COUNT)
    with pytest.raises(errors.NameClashError, match="function and evictor must have different"):
        windowed.evictor(Newest()).with_outputs().process(Wrong(evicted=VALUES), output=COUNT)
    with pytest.raises(errors.QueryError, match="a side output is one of large, dropped"):
        windowed.with_outputs().process(Windowed(), ["v"], output=COUNT).side("none")


class FailsToOpen(gw.functions.Evictor):
    def open(self, context: gw.typing.RuntimeContext) -> None:
        raise ValueError("no model")


def test_what_was_opened_is_closed_if_another_one_fails_to_open() -> None:
    function = Windowed()
    windowed = keyed(ROWS).window(TUMBLING).evictor(FailsToOpen())
    outputs = windowed.with_outputs().process(function, ["v"], output=COUNT)
    with pytest.raises(errors.FunctionFailedError, match=r"in FailsToOpen\.open: .* no model"):
        outputs.result()
    assert function.told == [("k",), "close"]


class Registered:
    """A registry of users: it does not call `super`."""

    def __init_subclass__(cls) -> None:
        pass


class Plain(gw.functions.ProcessWindowFunction):
    """Says whether it was opened."""

    is_open = False

    def process(self, key: Any, context: Any, rows: Any) -> Iterator[Any]:
        yield {"n": int(self.is_open)}


def set_open(self: Any, context: gw.typing.RuntimeContext) -> None:
    self.is_open = context.keys == ("k",)


class OfRegistry(Registered, Plain):
    """A function of the registry."""

    open = set_open


class Patched(Plain):
    """A function that gets its method afterwards, as by a decorator of its class."""


setattr(Patched, "open", set_open)  # noqa: B010 - a type checker would refuse it


@pytest.mark.parametrize(("kind", "opened"), [(Plain, 0), (OfRegistry, 1), (Patched, 1)])
def test_whoever_has_the_method_is_opened(kind: type[Plain], opened: int) -> None:
    assert not hasattr(kind, "needs_open")  # whoever looks for what a function may have
    found = keyed(ROWS).window(TUMBLING).process(kind(), output=COUNT)
    assert set(found["n"].to_pylist()) == {opened}
