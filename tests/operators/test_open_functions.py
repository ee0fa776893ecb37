"""Functions of users that raise when they are opened or closed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import FunctionFailedError
from gpu_windows.operators import open_functions
from tests.operators.joins.rows import TUMBLING, keyed, table

ROWS = table([("a", 1, 1)])
VALUES = pa.schema([("v", pa.int64())])


class Tells:
    """Notes calls of `open` and `close`, and raises in those that a test says."""

    def __init__(self, told: list[str], raises: str = "") -> None:
        self.told, self.raises = told, raises

    def open(self, context: Any) -> None:
        self._note("open", context)

    def close(self) -> None:
        self._note("close")

    def _note(self, called: str, context: Any = None) -> None:
        assert context is None or context.keys == ("k",)
        self.told.append(f"{type(self).__name__}.{called}")
        if self.raises == called:
            raise KeyError(called)


class ByRow(Tells, gw.functions.KeyedProcessFunction):
    def process_element(self, row: Any, context: gw.typing.KeyedContext) -> None:
        del row, context


class InBatches(Tells, gw.functions.VectorProcessFunction):
    def process_batch(self, batch: gw.typing.RowsBatch) -> None:
        del batch


class Windowed(Tells, gw.functions.ProcessWindowFunction):
    def process(self, key: Any, context: Any, rows: Any) -> list[Any]:
        del key, context, rows
        return []


class Evicts(Tells, gw.functions.Evictor):
    pass


def outputs_of(function: Any) -> gw.typing.Outputs:
    return keyed(ROWS).with_outputs().process(function, ["v"], output=VALUES)


@pytest.mark.parametrize("kind", [ByRow, InBatches])
@pytest.mark.parametrize("called", ["open", "close"])
def test_what_process_functions_raise(kind: Any, called: str) -> None:
    """One that fails to open is closed, too, as in Flink; either error says where it was."""
    told: list[str] = []
    name = kind.__name__
    with pytest.raises(FunctionFailedError, match=rf"in {name}\.{called}: KeyError"):
        outputs_of(kind(told, called)).result()
    assert told == [f"{name}.open", f"{name}.close"]


class Numbers:
    """Has a list of its own from `open` on."""

    seen: list[Any] | None = None

    def open(self, context: gw.typing.RuntimeContext) -> None:
        del context
        self.seen = []

    def close(self) -> None:
        self.seen = None

    def note(self) -> int:
        assert self.seen is not None
        self.seen.append(1)
        return len(self.seen)


class NumbersWindows(Numbers, gw.functions.ProcessWindowFunction):
    inner: Any = None

    def process(self, key: Any, context: Any, rows: Any) -> list[Any]:
        del key, context, rows
        if NumbersWindows.inner is not None:
            inner, NumbersWindows.inner = NumbersWindows.inner, None
            inner()
        return [{"v": self.note()}]


class NumbersGroups(Numbers, gw.functions.CoGroupFunction):
    def co_group(self, key: Any, context: Any, left: Any, right: Any) -> list[Any]:
        del key, context, left, right
        return [{"v": self.note()}]


class NumbersPairs(Numbers, gw.functions.ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, context: Any) -> list[Any]:
        del left, right, context
        return [{"v": self.note()}]


class NumbersEvictions(Numbers, gw.functions.Evictor):
    def evict_before(self, elements: Any, window: Any, context: Any) -> Any:
        del window, context
        self.note()
        return elements


class NumbersFirings(Numbers, gw.functions.Trigger):
    def on_element(
        self, row: Any, timestamp: Any, window: Any, context: Any
    ) -> gw.functions.TriggerResult:
        del row, timestamp, window, context
        self.note()
        return gw.functions.TriggerResult.FIRE

    def clear(self, window: Any, context: Any) -> None:
        del window, context


def _queries() -> list[tuple[list[Any], gw.typing.Outputs]]:
    """Return parts and the outputs of a query with them, of each kind."""
    function, evictor, trigger = NumbersWindows(), NumbersEvictions(), NumbersFirings()
    parts = [function, evictor, trigger]
    two, other = keyed(table([("a", 1, 1), ("a", 12, 1)])), keyed(table([("a", 1, 2)]))
    windowed = two.window(TUMBLING).trigger(gw.PurgingTrigger(trigger)).evictor(evictor)
    groups, pairs = NumbersGroups(), NumbersPairs()
    return [
        (parts, windowed.with_outputs().process(function, ["v"], output=VALUES)),
        (
            [groups],
            two.co_group(other)
            .window(TUMBLING)
            .with_outputs()
            .process(groups, ["v"], ["v"], output=VALUES),
        ),
        (
            [pairs],
            two.interval_join(other)
            .between("-1 minute", "1 minute")
            .with_outputs()
            .process(pairs, ["v"], ["v"], output=VALUES),
        ),
    ]


def test_each_query_opens_parts_of_its_own() -> None:
    for parts, outputs in _queries():
        assert outputs.result()["v"].to_pylist() == [1, 2]
        assert not any(vars(part) for part in parts)
        query = outputs.plan.query
        of_opened = open_functions.OpenedParts(query).query
        assert of_opened.token == query.token
        ids = set(map(id, of_opened.rich_parts))
        assert len(ids) == len(parts)
        assert not ids & set(map(id, parts))


def test_a_window_function_may_be_in_two_queries_that_run_in_turn() -> None:
    (_, first), *_ = _queries()
    function: Any = first.plan.query.rich_parts[0]
    again = keyed(ROWS).window(TUMBLING).with_outputs().process(function, ["v"], output=VALUES)
    inner: list[Any] = []
    NumbersWindows.inner = lambda: inner.extend(again.result()["v"].to_pylist())
    assert first.result()["v"].to_pylist() == [1, 2]
    assert inner == [1]


@pytest.mark.parametrize("raises", ["open", "close"])
def test_all_parts_are_closed_whatever_one_raises(raises: str) -> None:
    told: list[str] = []
    windowed = keyed(ROWS).window(TUMBLING).evictor(Evicts(told, raises))
    with pytest.raises(FunctionFailedError, match=rf"in Evicts\.{raises}: KeyError"):
        windowed.with_outputs().process(Windowed(told), ["v"], output=VALUES).result()
    assert told == ["Windowed.open", "Evicts.open", "Evicts.close", "Windowed.close"]


def test_all_queries_are_closed_whatever_one_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_functions, "_OPEN", {})
    monkeypatch.setattr(open_functions, "_MAX_OPEN", 1)
    told: list[str] = []

    def open_(raises: str = "") -> Any:
        query = outputs_of(ByRow(told, raises)).plan.query
        return open_functions.open_for(query, lambda _: _Part(ByRow(told, raises)))

    open_("close")
    with pytest.raises(KeyError):
        open_()  # the first one is closed for it
    monkeypatch.setattr(open_functions, "_MAX_OPEN", 9)
    open_("close")
    open_("close")
    with pytest.raises(KeyError):
        open_functions._close_all()
    assert told == ["ByRow.close"] * 4
    assert open_functions._OPEN == {}


class _Part:
    def __init__(self, part: Tells) -> None:
        self.close = part.close
