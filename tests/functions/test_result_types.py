"""A result of another type than declared is refused with the key, and the window, it is of."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import InvalidFunctionError

LONG = pa.int64()
TIMED = gw.stream(pa.table({"k": ["a", "b"], "ts": [1, 2]})).event_time(
    "ts", gw.WatermarkStrategy.for_monotonous_timestamps()
)
SECOND = gw.TumblingEventTimeWindows.of("1 s")
WINDOW = "window 1970-01-01 00:00:00 to 1970-01-01 00:00:01"


class OfRows(gw.functions.KeyedProcessFunction):
    side_outputs = {"aside": pa.schema([("n", LONG)])}  # noqa: RUF012

    def __init__(self, wrong: object, *, aside: bool) -> None:
        self.wrong, self.aside = wrong, aside

    def process_element(self, row: Any, context: Any) -> Any:
        value = {"n": self.wrong if context.key["k"] == "b" else 1}
        if not self.aside:
            return [value]
        context.output("aside", value)
        return None


class OfWindows(gw.functions.ProcessWindowFunction):
    def __init__(self, wrong: object) -> None:
        self.wrong = wrong

    def process(self, key: Any, context: Any, rows: Any) -> Any:
        yield {"n": self.wrong if key.get("k", "b") == "b" else 1}


@pytest.mark.parametrize("aside", [False, True])
@pytest.mark.parametrize("wrong", ["x", 1.5])
def test_results_of_rows(wrong: object, aside: bool) -> None:
    """The first line has function, method and line, key, time, the whole row and the column."""
    line = OfRows.process_element.__code__.co_firstlineno
    where = (
        "at key k='b', 1970-01-01 00:00:00.000002, in process_element "
        f"(test_result_types.py, line {line}), which gave {{'n': {wrong!r}}}"
    )
    message = f"OfRows must return int64 ({where}), got {wrong!r} (column 'n')"
    match = f"^{re.escape(message)}$"
    with pytest.raises(InvalidFunctionError, match=match):
        TIMED.key_by("k").process(OfRows(wrong, aside=aside), output=pa.schema([("n", LONG)]))


def test_results_of_windows() -> None:
    match = rf"^OfWindows must return int64 \(at key k='b', {WINDOW}\), got 'x' \(column 'n'\)$"
    with pytest.raises(InvalidFunctionError, match=match):
        TIMED.key_by("k").window(SECOND).process(OfWindows("x"), output=pa.schema([("n", LONG)]))


def test_results_of_windows_of_all_rows() -> None:
    with pytest.raises(InvalidFunctionError, match=rf"\(at no key, {WINDOW}\), got 'x'"):
        TIMED.window_all(SECOND).process(OfWindows("x"), output=pa.schema([("n", LONG)]))


def test_results_that_may_not_be_null() -> None:
    output = pa.schema([pa.field("n", LONG, nullable=False)])
    with pytest.raises(InvalidFunctionError, match=rf"NOT NULL \(at key k='b', {WINDOW}\)"):
        TIMED.key_by("k").window(SECOND).process(OfWindows(None), output=output)
