"""Errors of code of the user's in the operator of single rows say which function, and where."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import (
    FunctionFailedError,
    InvalidFunctionError,
    InvalidTriggerError,
    QueryError,
)
from tests.operators.joins.rows import TUMBLING, keyed, table

LONG = pa.int64()
ROWS = table([("a", 1, 1), ("a", 12, 5)])
VALUES = pa.schema([("v", LONG)])


class Fires(gw.functions.Trigger):
    """Fires at the end; one of its methods does what a test says."""

    def __init__(self, called: str, does: Any) -> None:
        self._called, self._does = called, does

    def _answer(self, called: str) -> Any:
        return self._does() if called == self._called else gw.functions.TriggerResult.CONTINUE

    def on_element(self, row: Any, timestamp: Any, window: Any, context: Any) -> Any:
        context.register_event_time_timer(window.max_timestamp)
        return self._answer("on_element")

    def on_event_time(self, time: Any, window: Any, context: Any) -> Any:
        return self._answer("on_event_time")

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, context: Any) -> Any:
        return self._answer("on_merge")

    def clear(self, window: Any, context: Any) -> Any:
        return self._answer("clear")


def _raises() -> Any:
    raise KeyError("mine")


@pytest.mark.parametrize("called", ["on_element", "on_event_time", "on_merge", "clear"])
def test_what_triggers_raise(called: str) -> None:
    windows = gw.EventTimeSessionWindows.with_gap("20 seconds")
    windowed = keyed(ROWS).window(windows).trigger(Fires(called, _raises))
    with pytest.raises(FunctionFailedError, match=rf"in Fires\.{called}, at key k='a', .*KeyError"):
        windowed.aggregate(n=gw.count())


@pytest.mark.parametrize("called", ["on_element", "on_event_time"])
def test_a_trigger_says_something(called: str) -> None:
    windowed = keyed(ROWS).window(TUMBLING).trigger(Fires(called, lambda: None))
    with pytest.raises(InvalidTriggerError, match=rf"Fires\.{called} must return a TriggerResult"):
        windowed.aggregate(n=gw.count())


class Clears(gw.functions.ProcessWindowFunction):
    def process(self, key: Any, context: Any, rows: Any) -> list[Any]:
        return []

    def clear(self, context: Any) -> None:
        _raises()


def test_what_clear_raises() -> None:
    with pytest.raises(FunctionFailedError, match=r"in Clears\.clear, at key k='a', .*KeyError"):
        keyed(ROWS).window(TUMBLING).process(Clears(), ["v"], output=VALUES)


class Sums(gw.functions.AggregateFunction):
    accumulator = result = LONG

    def __init__(self, fails: str) -> None:
        self._fails = fails

    def _made(self, called: str) -> int:
        return _raises() or 0 if called == self._fails else 0

    def create_accumulator(self) -> int:
        return self._made("create_accumulator")

    def add(self, row: Any, accumulator: Any) -> int:
        return self._made("add")

    def get_result(self, accumulator: Any) -> int:
        return self._made("get_result")


@pytest.mark.parametrize("called", ["create_accumulator", "add", "get_result"])
def test_what_aggregates_raise(called: str) -> None:
    place = r"at key k='a', window 1970-01-01 00:00:00 to 1970-01-01 00:00:00.000010"
    with pytest.raises(FunctionFailedError, match=rf"in Sums\.{called}\(.*, {place}: KeyError"):
        keyed(ROWS).window(TUMBLING).aggregate(s=gw.user_aggregate(Sums(called), "v"))


def test_what_a_reduce_function_raises() -> None:
    windowed = keyed(table([("a", 1, 1), ("a", 2, 5)])).window(TUMBLING)
    with pytest.raises(FunctionFailedError, match=r"in reduce, at rows {'v': 1}, {'v': 5}, at key"):
        windowed.reduce(lambda *_: _raises(), ["v"])


@pytest.mark.parametrize("what", ["window_state", "key_state"])
def test_state_of_windows_is_declared_by_types(what: str) -> None:
    class Keeps(Clears):
        pass

    windowed = keyed(ROWS).window(TUMBLING)
    for wrong in ({"n": int}, {1: LONG}, "n"):
        setattr(Keeps, what, wrong)
        with pytest.raises(InvalidFunctionError, match=rf"Keeps\.{what} maps names of columns"):
            windowed.process(Keeps(), ["v"], output=VALUES)

    class Assigns(Clears):
        some: ClassVar = {"n": LONG}

        def __init__(self) -> None:
            setattr(self, what, self.some)

    with pytest.raises(InvalidFunctionError, match=f"Assigns declares {what} in the class"):
        Assigns()


@pytest.mark.parametrize("found", [None, float("nan"), float("inf"), 1.5, "12", True, 2**70])
def test_what_generators_give(found: Any) -> None:
    strategy = gw.WatermarkStrategy.for_generator(lambda _: found)
    with pytest.raises(QueryError, match="a generator must return a watermark"):
        strategy.watermark_of(np.array([1]))


def test_what_generators_raise() -> None:
    strategy = gw.WatermarkStrategy.for_generator(lambda _: _raises())
    with pytest.raises(FunctionFailedError, match="in the generator of watermarks <lambda>: Key"):
        strategy.watermark_of(np.array([1]))
