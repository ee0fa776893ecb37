"""Functions over the pairs of joins: what they see and give, side outputs, counters, errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.functions.join import JoinType
from gpu_windows.operators.process import pairs as pairs_of
from tests.examples import examples
from tests.operators.asides import same_put_away
from tests.operators.joins.rows import ENGINES, HOW, ROWS, TUMBLING, Row, keyed, table
from tests.planning.queries import rows_of

LONG = pa.int64()
ALONE = pa.schema([("left", LONG), ("right", LONG)])
TIMES = ("left_time", "right_time", "time")
IN_TIME = pa.schema([("l", LONG), ("r", LONG), *((name, LONG) for name in TIMES)])
IN_WINDOWS = pa.schema([("l", LONG), ("r", LONG), ("start", LONG)])


def value(row: Any) -> Any:
    """Return the value of a row that may not be there."""
    assert row is None or row.keys() == {"v"}
    return row and row["v"]


class Told:
    """Notes when it is opened and closed; rows without a partner go aside."""

    side_outputs: ClassVar = {"alone": ALONE}

    def __init__(self) -> None:
        self.told: list[Any] = []

    def open(self, context: gw.typing.RuntimeContext) -> None:
        self.told.append(context.keys)

    def close(self) -> None:
        self.told.append("close")

    def takes(self, left: Any, right: Any, context: Any) -> bool:
        """Tell whether a pair has both rows."""
        assert context.key.keys() == {"k"}
        context.count("pairs")
        if left is None or right is None:
            context.output("alone", {"left": value(left), "right": value(right)})
        return left is not None and right is not None


class InTime(Told, gw.functions.ProcessJoinFunction):
    """Gives a pair as often as its left value says, up to twice."""

    def process_element(
        self, left: Any, right: Any, context: gw.typing.IntervalPairContext
    ) -> Iterator[Any]:
        times = context.left_timestamp, context.right_timestamp, context.timestamp
        assert (times[0] is None, times[1] is None) == (left is None, right is None)
        assert times[2] == max(time for time in times[:2] if time is not None)
        if self.takes(left, right, context):
            for _ in range(min(left["v"], 2)):
                yield {"l": left["v"], "r": right["v"], **dict(zip(TIMES, times, strict=True))}


class InWindows(Told, gw.functions.FlatJoinFunction):
    """Gives a pair as often as its left value says, up to twice."""

    def join(self, left: Any, right: Any, context: Any) -> Iterator[Any]:
        assert context.window.max_timestamp == context.window.end - 1
        if self.takes(left, right, context):
            for _ in range(min(left["v"], 2)):
                yield {"l": left["v"], "r": right["v"], "start": context.window.start}


def in_time(left: Any, right: Any) -> gw.typing.IntervalJoined:
    pairs = keyed(left).interval_join(keyed(right)).between("-2 microseconds", "4 microseconds")
    return pairs.options(device="cpu")


def in_windows(left: Any, right: Any, engine: Any) -> gw.typing.WindowedJoin:
    return keyed(left).join(keyed(right)).window(TUMBLING).options(engine=engine, device="cpu")


def both_kinds(left: Any, right: Any, engine: Any, how: Any = "inner", **more: Any) -> Any:
    """Yield each kind of join: the function, its outputs, and the pairs with their times.

    Joins of windows run by ``engine``.
    """
    function: Any = InTime()
    join: Any = in_time(left, right)
    made = join.with_outputs().process(function, ["v"], ["v"], output=IN_TIME, how=how, **more)
    yield function, made, join.with_outputs().select(["v", "ts"], ["v", "ts"], how=how, **more)
    function, join = InWindows(), in_windows(left, right, engine)
    made = join.with_outputs().process(function, ["v"], ["v"], output=IN_WINDOWS, how=how, **more)
    yield function, made, join.with_outputs().select(["v", "ts"], ["v", "ts"], how=how, **more)


def wanted(pairs: pa.Table) -> tuple[Counter[Any], Counter[Any]]:
    """Return what a function gives, and what goes aside, for the pairs of a join."""
    given, aside = Counter[Any](), Counter[Any]()
    for row in pairs.to_pylist():
        left, right = row["left_v"], row.get("right_v")
        if left is None or right is None:
            aside[row["k"], left, right] += 1
            continue
        times = row["left_ts"], row["right_ts"]
        bounds = (row["window_start"], row["window_end"]) if "window_end" in row else ()
        said = (bounds[0],) if bounds else (*times, max(times))
        given[row["k"], *bounds, left, right, *said] += min(left, 2)
    return +given, aside


@examples(40)
@given(ROWS, ROWS, st.sampled_from(HOW), st.sampled_from(ENGINES))
def test_rows_for_every_pair(left: Any, right: Any, how: Any, engine: Any) -> None:
    for function, outputs, join in both_kinds(table(left), table(right), engine, how):
        given, aside = wanted(join.result())
        found = outputs.result()
        assert Counter(map(tuple, (row.values() for row in found.to_pylist()))) == given
        alone = outputs.side("alone").to_pylist()
        assert Counter(tuple(row.values()) for row in alone) == aside
        pairs = {"pairs": len(join.result())} if len(join.result()) else {}
        assert dict(outputs.metrics()["user"][0].as_py()) == pairs
        assert outputs.metrics()["fired"][0].as_py() == len(found)
        assert function.told == [("k",), "close"]
        assert rows_of(outputs.rejected()) == rows_of(
            join.rejected().select(outputs.rejected().column_names)
        )


LEFT: list[Row] = [("a", 1, 1), ("a", 5, 2), ("b", 12, 3)]
RIGHT: list[Row] = [("a", 3, 5), ("a", 4, 6), ("b", 30, 7)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", get_args(JoinType))
def test_put_away_after_each_call(how: Any, engine: Any) -> None:
    for _, outputs, _ in both_kinds(table(LEFT), table(RIGHT), engine, how):
        found = same_put_away(outputs)
        assert found.counts["pairs"] > 0


def test_pairs_are_taken_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [made.result() for _, made, _ in both_kinds(table(LEFT), table(RIGHT), "auto")]
    monkeypatch.setattr(pairs_of, "_PAIRS", 2)
    monkeypatch.setattr(pairs_of, "EMISSION_ROWS", 1)
    after = [made.result() for _, made, _ in both_kinds(table(LEFT), table(RIGHT), "auto")]
    assert before == after
    assert all(map(len, after))


@pytest.mark.parametrize("engine", ENGINES)
def test_conditions_see_names_with_prefixes(engine: Any) -> None:
    where = pc.field("right_v") > pc.field("left_v") + 4
    for _, outputs, join in both_kinds(table(LEFT), table(RIGHT), engine, "left", where=where):
        given, aside = wanted(join.result())
        assert sum(given.values()) == len(outputs.result())
        assert Counter(tuple(row.values()) for row in outputs.side("alone").to_pylist()) == aside


class Renamed(gw.functions.ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, context: Any) -> list[Any]:
        assert (left.keys(), right.keys()) == ({"price", "k"}, {"v", "k"})
        return [{"sum": left["price"] + right["v"], "same": int(left["k"] == right["k"] == "a")}]


def test_names_are_those_of_mappings() -> None:
    """Of each side alone; in a condition they have prefixes."""
    join = in_time(table(LEFT), table(RIGHT))
    output = pa.schema([("sum", LONG), ("same", LONG)])
    where, right = pc.field("left_price") == 2, {"v": "v", "k": "k"}
    found = join.process(Renamed(), {"price": "v", "k": "k"}, right, output=output, where=where)
    assert sorted(found["sum"].to_pylist()) == [7, 8]
    assert found["same"].to_pylist() == [1, 1]


def test_the_nearest_row() -> None:
    nearest = in_time(table(LEFT), table(RIGHT)).nearest("after")
    outputs = nearest.with_outputs().process(InTime(), ["v"], ["v"], output=IN_TIME, how="left")
    assert [(row["l"], row["r"]) for row in outputs.result().to_pylist()] == [(1, 5)]
    assert sorted(row["left"] for row in outputs.side("alone").to_pylist()) == [2, 3]


class Newest(gw.functions.Evictor):
    side_outputs: ClassVar = {"evicted": pa.schema([("n", LONG)])}

    def evict_before(self, elements: Any, window: Any, context: gw.typing.EvictorContext) -> Any:
        context.output("evicted", {"n": len(elements) - 2})
        return elements[-2:]


def test_a_window_join_with_an_evictor_and_firing_columns() -> None:
    join = in_windows(table(LEFT), table(RIGHT), "auto").evictor(Newest()).with_firing_columns()
    outputs = join.with_outputs().process(InWindows(), ["v"], ["v"], output=IN_WINDOWS, how="full")
    assert outputs.result().column_names[-2:] == ["firing", "timing"]
    assert len(outputs.result()) == 0
    assert sorted(row["right"] or 0 for row in outputs.side("alone").to_pylist()) == [0, 5, 6, 7]
    assert sorted(row["n"] for row in outputs.side("evicted").to_pylist()) == [-1, -1, 2]


def test_explain_says_who_takes_the_pairs() -> None:
    for function, outputs, _ in both_kinds(table(LEFT), table(RIGHT), "auto"):
        text = outputs.explain()
        assert f"pairs for {type(function).__name__}(v, v)" in text
        assert "each pair goes to the function, in Python" in text
        assert "sides     alone" in text


class Failing(gw.functions.ProcessJoinFunction, gw.functions.FlatJoinFunction):
    def __init__(self, act: Any) -> None:
        self._act = act

    def process_element(self, left: Any, right: Any, context: Any) -> Any:
        return self._act(context)

    join = process_element


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda _: [{"n": 1 // 0}], errors.FunctionFailedError, "ZeroDivisionError"),
        (lambda _: [{"m": 1}], errors.InvalidFunctionError, "dicts of exactly n.*got {'m': 1}"),
        (
            lambda context: context.output("none", {}),
            errors.InvalidFunctionError,
            "must declare its side outputs; it declared none.*got 'none'",
        ),
    ],
)
def test_errors_name_function_key_and_rows(engine: Any, act: Any, error: Any, text: str) -> None:
    output = pa.schema([("n", LONG)])
    joins = in_time(table(LEFT), table(RIGHT)), in_windows(table(LEFT), table(RIGHT), engine)
    for join in joins:
        made = join.with_outputs().process(Failing(act), ["v"], ["v"], output=output)
        with pytest.raises(error, match=text) as found:
            made.result()
        assert "in Failing." in str(found.value)
        assert "at key k='a', left row {'v': " in str(found.value)


def test_what_is_refused() -> None:
    join: Any = in_time(table(LEFT), table(RIGHT))
    windows: Any = in_windows(table(LEFT), table(RIGHT), "auto")
    with pytest.raises(errors.QueryError, match="process takes a ProcessJoinFunction"):
        join.process(InWindows(), output=IN_TIME)
    with pytest.raises(errors.QueryError, match="process takes a FlatJoinFunction"):
        windows.process(InTime(), output=IN_TIME)
    with pytest.raises(errors.QueryError, match=r"output= is a pyarrow\.Schema"):
        join.process(InTime(), output={"n": LONG})
    with pytest.raises(errors.InvalidOptionError, match="how is one of"):
        join.process(InTime(), output=IN_TIME, how="cross")
    with pytest.raises(errors.QueryError, match="no such column"):
        join.process(InTime(), ["none"], output=IN_TIME)
    with pytest.raises(errors.NameClashError, match="'k'"):
        join.process(InTime(), output=pa.schema([("k", LONG)]))
    with pytest.raises(errors.NameClashError, match="'window_start'"):
        windows.process(InWindows(), output=pa.schema([("window_start", LONG)]))
