"""Functions of users that raise when they are opened or closed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import FunctionFailedError
from gpu_windows.operators import opened
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


class ByRow(Tells, gw.KeyedProcessFunction):
    def process_element(self, row: Any, context: gw.KeyedContext) -> None:
        del row, context


class InBatches(Tells, gw.VectorProcessFunction):
    def process_batch(self, batch: gw.RowsBatch) -> None:
        del batch


class Windowed(Tells, gw.ProcessWindowFunction):
    def process(self, key: Any, context: Any, rows: Any) -> list[Any]:
        del key, context, rows
        return []


class Evicts(Tells, gw.Evictor):
    pass


def outputs_of(function: Any) -> gw.Outputs:
    return keyed(ROWS).processed(function, ["v"], output=VALUES)


@pytest.mark.parametrize("kind", [ByRow, InBatches])
@pytest.mark.parametrize("called", ["open", "close"])
def test_what_process_functions_raise(kind: Any, called: str) -> None:
    """One that fails to open is closed, too, as in Flink; either error says where it was."""
    told: list[str] = []
    name = kind.__name__
    with pytest.raises(FunctionFailedError, match=rf"in {name}\.{called}: KeyError"):
        outputs_of(kind(told, called)).result()
    assert told == [f"{name}.open", f"{name}.close"]


@pytest.mark.parametrize("raises", ["open", "close"])
def test_all_parts_are_closed_whatever_one_raises(raises: str) -> None:
    told: list[str] = []
    windowed = keyed(ROWS).window(TUMBLING).evictor(Evicts(told, raises))
    with pytest.raises(FunctionFailedError, match=rf"in Evicts\.{raises}: KeyError"):
        windowed.processed(Windowed(told), ["v"], output=VALUES).result()
    assert told == ["Windowed.open", "Evicts.open", "Evicts.close", "Windowed.close"]


def test_all_queries_are_closed_whatever_one_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "_OPEN", {})
    monkeypatch.setattr(opened, "_MOST", 1)
    told: list[str] = []

    def open_(raises: str = "") -> Any:
        query = outputs_of(ByRow(told, raises)).plan.query
        return opened.opened(query, lambda _: _Part(ByRow(told, raises)))

    open_("close")
    with pytest.raises(KeyError):
        open_()  # the first one is closed for it
    monkeypatch.setattr(opened, "_MOST", 9)
    open_("close")
    open_("close")
    with pytest.raises(KeyError):
        opened._close_all()
    assert told == ["ByRow.close"] * 4
    assert opened._OPEN == {}


class _Part:
    def __init__(self, part: Tells) -> None:
        self.close = part.close
