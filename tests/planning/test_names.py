"""Names that clash for those who read results and side outputs are refused; others are not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.planning.validation import require_column
from tests.operators.joins.rows import STRICT, TUMBLING, keyed, table

LONG = pa.int64()
V = pa.schema([("v", LONG)])
ROWS = table([("a", 1, 1)])


class Aside(gw.functions.KeyedProcessFunction):
    """Has some side outputs, and gives nothing."""

    def __init__(self, **sides: pa.Schema) -> None:
        self._sides = sides

    @property
    def side_outputs(self) -> Any:
        return self._sides

    def process_element(self, row: Any, context: Any) -> Any:
        return []


class Dropped(gw.functions.Evictor):
    """Has a side output."""

    side_outputs = {"T": V}  # noqa: RUF012

    def evict_before(self, elements: Any, window: Any, context: Any) -> Any:
        return elements


class Counted(gw.functions.ProcessWindowFunction):
    """Has a side output."""

    side_outputs = {"t": V}  # noqa: RUF012

    def process(self, *given: Any) -> Any:
        return [{"v": len(given)}]


class Paired(gw.functions.ProcessJoinFunction):
    """Gives nothing."""

    def process_element(self, *given: Any) -> Any:
        return []


def processed(output: pa.Schema = V, **sides: pa.Schema) -> gw.typing.Outputs:
    return keyed(ROWS).with_outputs().process(Aside(**sides), ["v"], output=output)


@pytest.mark.parametrize(
    ("sides", "text"),
    [
        ({"t": pa.schema([("K", LONG)])}, "of the side output 't' must have .* got 'K', 'k'"),
        ({"t": pa.schema([("a", LONG), ("A", LONG)])}, "of the side output 't' .* got 'A', 'a'"),
        ({"t": V, "T": V}, "tags of side outputs.* got 'T', 't'"),
        ({"t": pa.schema([("__copy", LONG)])}, "used inside gpu_windows.* got '__copy'"),
    ],
)
def test_names_of_side_outputs(sides: Any, text: str) -> None:
    with pytest.raises(errors.NameClashError, match=text):
        processed(**sides)


def test_tags_of_function_and_evictor() -> None:
    windowed = keyed(ROWS).window(TUMBLING).evictor(Dropped())
    with pytest.raises(errors.NameClashError, match="different tags, got 'T', 't'"):
        windowed.with_outputs().process(Counted(), ["v"], output=V)


def test_a_result_and_a_key_that_differ_in_upper_and_lower_case() -> None:
    with pytest.raises(errors.NameClashError, match="got 'K', 'k'"):
        processed(pa.schema([("K", LONG)]))
    with pytest.raises(errors.NameClashError, match="got 'WINDOW_start', 'window_start'"):
        keyed(ROWS).window(TUMBLING).with_outputs().aggregate(WINDOW_start=gw.count())


@pytest.mark.parametrize("name", ["__copy", "__no_time", "__no_key", "__left_mark", "__RIGHT_mark"])
def test_names_of_columns_of_our_own(name: str) -> None:
    """They would not be seen."""
    inside, named = "used inside gpu_windows", pa.schema([(name, LONG)])
    with pytest.raises(errors.NameClashError, match=inside):
        processed(named)
    with pytest.raises(errors.NameClashError, match=inside):
        keyed(ROWS).window(TUMBLING).with_outputs().aggregate(**{name: gw.count()})
    with pytest.raises(errors.NameClashError, match=inside):
        gw.stream(ROWS.rename_columns(["k", "ts", name]))
    join = keyed(ROWS).interval_join(keyed(ROWS)).between("-1 s", "1 s")
    with pytest.raises(errors.NameClashError, match=inside):
        join.with_outputs().process(Paired(), output=named)
    with pytest.raises(errors.NameClashError, match=inside):
        join.with_outputs().select({name: "v"})


class Connected(gw.functions.KeyedCoProcessFunction):
    """Gives back what it sees of a row, and whether it is a right one."""

    def process_element1(self, row: Any, context: Any) -> Any:
        return [{"seen": f"{dict(row)}"}]

    def process_element2(self, row: Any, context: Any) -> Any:
        return [{"seen": f"right {dict(row)}"}]


class Broadcast(gw.functions.KeyedBroadcastProcessFunction):
    """Gives back what it sees of the keyed side."""

    def process_broadcast_element(self, row: Any, context: Any) -> Any:
        assert dict(row) == {"v": 5, "k": "x"}

    def process_element(self, row: Any, context: Any) -> Any:
        return [{"seen": f"{dict(row)}"}]


class Grouped(gw.functions.CoGroupFunction):
    """Gives back what it sees of both sides."""

    def co_group(self, key: Any, context: Any, left: Any, right: Any) -> Any:
        return [{"seen": f"{left.to_pylist()} {right.to_pylist()}"}]


@pytest.mark.parametrize("left", [{"v": "v", "k": "k"}, ["v", "k"]])
def test_a_function_sees_each_side_alone(left: Any) -> None:
    """So both may have the same names, and those of keys, from a mapping as from a list."""
    ours, its = keyed(ROWS), keyed(table([("a", 2, 3)]))
    seen, right = pa.schema([("seen", pa.string())]), {"v": "v", "k": "k"}
    found = ours.connect(its).process(Connected(), left, right, output=seen)
    row = "{'v': 1, 'k': 'a'}"
    assert sorted(found["seen"].to_pylist()) == ["right {'v': 3, 'k': 'a'}", row]
    small = gw.stream(table([("x", 1, 5)])).event_time("ts", STRICT).broadcast()
    found = ours.connect(small).process(Broadcast(), left, right, output=seen)
    assert found["seen"].to_pylist() == [row]
    found = ours.co_group(its).window(TUMBLING).process(Grouped(), left, right, output=seen)
    assert found["seen"].to_pylist() == [f"[{row}] [{{'v': 3, 'k': 'a'}}]"]


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("Key", "did you mean key"),
        ("delays", "did you mean delay"),
        ("e.ts", r"of a struct make a column first, with_columns\(ts='e\.ts'\)"),
        ("`e`.`in`.`v`", r"of a struct make a column first, with_columns\(in_v='e\.in\.v'\)"),
        ("`a.b`", r"names are written without backticks, a\.b"),
        ("key.ts", ""),
        ("nothing", ""),
    ],
)
def test_the_name_of_no_column_has_a_remedy(name: str, remedy: str) -> None:
    inner = pa.struct([("ts", pa.int64()), ("in", pa.struct([("v", pa.int64())]))])
    fields = [("key", pa.int64()), ("delay", pa.int64()), ("e", inner), ("a.b", pa.int64())]
    said = f": {remedy}" if remedy else ""
    rule = f"the input has no such column{said}; it has key, delay, e, a.b"
    with pytest.raises(errors.ColumnNotFoundError, match=rule):
        require_column(pa.schema(fields), name)
