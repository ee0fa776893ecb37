"""Patterns of rows by the API: conditions, measures, what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.errors import (
    ColumnTypeError,
    ExpressionError,
    GpuWindowsError,
    InvalidDurationError,
    InvalidPatternError,
    NameClashError,
    QueryError,
    SkipError,
    SqlError,
    UnsupportedQueryError,
)
from gpu_windows.expressions.arrow import compute
from gpu_windows.planning.facts import facts_of

NAN = float("nan")
IN_ORDER = gw.WatermarkStrategy.for_monotonous_timestamps()


def keyed(table: pa.Table | Mapping[str, Sequence[Any]], key: str = "k") -> gw.typing.KeyedStream:
    """Rows of a key, of which the first is of second 0, and so on, unless they have times."""
    table = pa.table(table) if isinstance(table, Mapping) else table
    if key not in table.column_names:
        table = table.append_column(key, pa.array(["x"] * len(table)))
    if "ts" not in table.column_names:
        ticks = pa.array([second * 1_000_000 for second in range(len(table))])
        table = table.append_column("ts", ticks.cast(pa.timestamp("us", "UTC")))
    return gw.stream(table).event_time("ts", IN_ORDER).key_by(key)


def pairs(condition: str, **columns: Any) -> list[int]:
    """Return the second rows of pairs, one after the other, of which a condition is true."""
    rows = keyed({**columns, "n": [*range(len(next(iter(columns.values()))))]})
    found = rows.match_recognize("A B", {"B": condition}).measures(n="B.n")
    return [int(n) for n in found.column("n").to_pylist()]


def test_a_fall_and_a_rise() -> None:
    rows = keyed({"v": [10, 8, 6, 7, 12, 9, 8, 20]})
    falls = rows.match_recognize(
        "A B+ C",
        {
            "b": "B.v < LAST(B.v, 1) OR (LAST(B.v, 1) IS NULL AND B.v < A.v)",
            "C": "C.v > LAST(B.v)",
        },
        after="skip past last row",
    )
    found = falls.measures(
        a="A.v", low="LAST(B.v)", n="COUNT(B.v)", s="SUM(v)", d="C.v - A.v", t="MATCH_ROWTIME()"
    )
    assert found.select(["a", "low", "n", "s", "d"]).to_pylist() == [
        {"a": 10, "low": 6, "n": 2, "s": 31, "d": -3},
        {"a": 12, "low": 8, "n": 2, "s": 49, "d": 8},
    ]
    assert found.column("t").to_pylist() == [
        datetime(1970, 1, 1, 0, 0, s, tzinfo=UTC) for s in (3, 7)
    ]
    assert "pattern (A B+ C)" in falls.with_outputs().measures(a="A.v").explain()


# ---- conditions between rows


def test_rows_are_compared_by_values_of_many_types() -> None:
    assert pairs("B.v > A.v", v=[1, 2, 2, None, 3]) == [1]
    assert pairs("B.v <> A.v", v=["a", "b", "b", None, "é", "z"]) == [1, 5]
    assert pairs("B.v >= A.v", v=[date(2020, 1, 2), date(2020, 1, 1), date(2020, 1, 1)]) == [2]
    assert pairs("B.v < A.v", v=[Decimal("1.50"), Decimal("-1.00"), Decimal("2.00")]) == [1]
    assert pairs("B.v = A.v", v=[True, True, False, None]) == [1]
    assert pairs("B.v <= A.v", v=[b"b", b"a", b"c"]) == [1]
    assert pairs("B.v = A.v OR COUNT(B.v) = 0", v=pa.nulls(2)) == [1]
    assert pairs("COUNT(v) = 2", v=["a", "b", None]) == [1]
    lists = pa.array([[1], None, None], pa.list_(pa.int64()))
    assert pairs("COUNT(v) = 1", v=lists) == [1]
    for values in (["b", "a", "b", None], [7, 1, 7, None], [0.5, -1.0, 0.5, None], [1, 0, 1, None]):
        assert pairs("B.v > A.v", v=pa.array(values).dictionary_encode()) == [2]


def test_nan_is_the_greatest_and_equals_itself() -> None:
    assert pairs("B.v > A.v", v=[1.0, NAN, NAN, 2.0, float("inf"), NAN]) == [1, 4, 5]
    assert pairs("B.v = A.v", v=[1.0, NAN, NAN, -0.0, 0.0]) == [2, 4]


def test_times_and_durations() -> None:
    assert pairs("B.ts - A.ts > INTERVAL '1' SECOND", v=[1, 2, 3], ts=_times(0, 1, 3)) == [2]
    assert pairs("B.ts < A.ts + INTERVAL '1' MINUTE", v=[1, 2, 3], ts=_times(0, 59, 200)) == [1]
    late = datetime(2026, 1, 1, tzinfo=UTC)
    assert pairs("B.ts - A.ts = B.w - A.w", v=[1, 2], w=[late, late + timedelta(seconds=1)]) == [1]
    nanoseconds = pa.array([0, 0, 1_000], pa.timestamp("ns"))
    assert pairs("B.w = A.w", w=nanoseconds) == [1]


def _times(*seconds: int) -> pa.Array:
    return pa.array([second * 1_000_000 for second in seconds]).cast(pa.timestamp("us", "UTC"))


def test_numbers_of_other_kinds_meet() -> None:
    assert pairs("B.w > A.v", v=[1, 1, 1], w=[0.5, 1.5, 0.5]) == [1]
    assert pairs("B.v - A.v > 1.5", v=[0, 1, 3]) == [2]
    assert pairs("B.v - A.v < 1.5", v=[0, 1, 3]) == [1]
    assert pairs("1.5 <= B.v - A.v", v=[0, 1, 3]) == [2]
    assert pairs("B.v - A.v <> 1.5", v=[0, None, 3, 4]) == [3]
    assert pairs("B.v - A.v = 2.0", v=[0, 1, 3]) == [2]
    assert pairs("B.v / A.v = 2.5", v=[2, 5, 5]) == [1]
    assert pairs("(B.v - A.v) DIV 2 = -1 AND (B.v - A.v) % 2 = -1", v=[0, -3, 0]) == [1]
    assert pairs("B.v BETWEEN A.v AND A.w", v=[0, 1, 9], w=[1, 5, 5]) == [1]
    assert pairs("B.v NOT BETWEEN A.v AND A.w", v=[0, 1, 9], w=[1, 5, 5]) == [2]


def test_what_is_chosen_between_rows() -> None:
    case = "CASE WHEN B.v > A.v THEN B.w WHEN B.v < A.v THEN A.w END > 4"
    assert pairs(case, v=[0, 1, 0, 0], w=[5, 5, 1, 9]) == [1, 2]
    assert pairs("COALESCE(B.v, A.v) = A.w", v=[0, None, 3], w=[0, 3, 3]) == [1, 2]
    assert pairs("IF(B.v = A.v, B.w, A.w)", v=[1, 1, 2], w=[False, True, True]) == [1, 2]
    assert pairs("(B.v > A.v) IS NOT TRUE", v=[1, 2, None, 0]) == [2, 3]
    assert pairs("(B.v > A.v) IS FALSE", v=[1, 2, None, 0, 0]) == [4]


def test_what_comes_after_false_or_true_is_not_asked() -> None:
    assert pairs("A.v <> 0 AND B.v / A.v > 1", v=[0, 1, 2]) == [2]
    assert pairs("A.v = 0 OR B.v / A.v > 1", v=[0, 1, 2]) == [1, 2]
    with pytest.raises(ExpressionError, match="the condition of B"):
        pairs("B.v / A.v > 1 AND A.v <> 0", v=[0, 1, 2])


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("B.v + A.v > 0", pa.array([2**62, 2**62])),
        ("B.v - A.v > 0", pa.array([-(2**62) - 1, 2**62])),
        ("B.v * A.v > 0", pa.array([2**32, 2**32])),
        ("B.v * A.v > 0", pa.array([-1, -(2**63)])),
        ("-(B.v + A.v) > 0", pa.array([-(2**62), -(2**62)])),
        ("B.v + A.v > 0", pa.array([100, 100], pa.int8())),
        ("B.v * A.v > 0", pa.array([2**16, 2**16], pa.int32())),
        ("B.v % (A.v - B.v) = 0", pa.array([1, 1])),
        ("(B.v + A.v) / (A.v - B.v) > 0", pa.array([1.0, 1.0])),
        ("SUM(v) > 0", pa.array([2**62, 2**62])),
    ],
)
def test_overflow_and_division_by_zero_are_told(condition: str, values: pa.Array) -> None:
    with pytest.raises(ExpressionError, match=r"the condition of B has a value: it overflows"):
        pairs(condition, v=values)


def test_what_may_have_no_value_is_asked_where_it_is_said() -> None:
    guarded = "B.v <> 0 AND 10 / B.v > A.v"
    assert pairs(guarded, v=[1, 0, 3, 2, 7]) == [2, 3]
    with pytest.raises(ExpressionError, match="the condition of B"):
        pairs("10 / B.v > A.v", v=[1, 0])
    rows = keyed({"v": [0, 1, 5, 0, 9]})
    matched = rows.match_recognize("A B", {"A": "A.v > 0", "B": "B.v > A.v"})
    found = matched.measures(x="LAST(10 / A.v)", y="FIRST(A.v * 2 + 1)", z="10 / B.v")
    assert found.to_pylist() == [{"k": "x", "x": 10.0, "y": 3, "z": 2.0}]


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("CASE WHEN B.n <> 0 THEN CAST(10 / B.n AS INT) ELSE 0 END > A.x", [1, 2]),
        ("IF(B.n <> 0, ABS(10 / B.n), 0D) > A.x", [1, 2, 3]),
        ("(B.n = 0 OR ABS(10 / B.n) > 3) AND B.x > A.x", [1, 2, 3, 4]),
        ("B.n <> 0 AND B.x % B.n = 0 AND B.x > A.x", [1]),
        ("CASE WHEN 10 / B.x > 1 THEN B.l ELSE B.l END IS NULL AND B.x > A.x", []),
        ("B.x - A.x < 2 * 0.75", [1, 2, 3, 4]),
        ("B.x - A.x < CAST(2 AS DECIMAL(3,1))", [1, 2, 3, 4]),
        ("CASE WHEN 10 / B.x > 100 THEN B.i4 ELSE B.big END + 1 > A.x", [1, 2, 3, 4]),
        ("COALESCE(B.n, 10 / A.x, A.x) > A.n", [1, 2, 3]),
    ],
)
def test_parts_of_one_row_keep_their_guards(condition: str, wanted: list[int]) -> None:
    columns = {
        "x": pa.array([1, 2, 3, 4, 5]),
        "n": pa.array([0, 1, 2, 3, 0]),
        "l": pa.array([[1]] * 5),
        "i4": pa.array([1] * 5, pa.int32()),
        "big": pa.array([2**40] * 5),
    }
    rows = keyed(pa.table(columns).append_column("place", pa.array([*range(5)])))
    found = rows.match_recognize("A B", {"B": condition}).measures(p="B.place")
    assert found.column("p").to_pylist() == wanted


def test_a_sum_that_does_not_fit_is_an_error_where_it_is_asked_for() -> None:
    rows = keyed({"v": [2**62, 2**62, 2**62]})
    never = {"B": "COUNT(*) = 2 OR SUM(A.v) < 0"}
    assert rows.match_recognize("A{1} B", never).measures(n="COUNT(*)").num_rows == 2
    with pytest.raises(ExpressionError, match="the condition of B"):
        rows.match_recognize("A{2} B", {"B": "SUM(A.v) < 0"}).measures(n="COUNT(*)")


def test_numbers_beyond_64_bits_are_written() -> None:
    huge = "99999999999999999999"
    assert pairs(f"B.v + A.v < {huge}", v=[1, 2, None]) == [1]
    assert pairs(f"B.v + A.v > -{huge} AND B.v + A.v <> {huge}.5", v=[1, 2]) == [1]
    assert pairs(f"B.v + A.v = {huge}", v=[1, 2]) == []


def test_rows_that_are_missing_are_null() -> None:
    rows = keyed({"v": [1, 2, 3, 4], "b": [True, False, False, True]})
    matched = rows.match_recognize("A B? C", {"B": "B.b", "C": "B.v IS NULL OR C.v > B.v"})
    found = matched.measures(a="A.v", b="B.v", c="C.v", first="FIRST(B.v, 1)", n="COUNT(B.v)")
    assert found.to_pylist()[0] == {"k": "x", "a": 1, "b": None, "c": 2, "first": None, "n": 0}


def test_sums_until_a_row_have_it_among_them() -> None:
    rows = keyed({"v": [1, 2, 3, 4, 5, 6]})
    matched = rows.match_recognize(
        "A B+? C", {"C": "SUM(B.v) + C.v >= 12"}, after="skip past last row"
    )
    assert matched.measures(a="A.v", n="COUNT(B.v)", c="C.v").to_pylist() == [
        {"k": "x", "a": 1, "n": 3, "c": 5}
    ]
    few = keyed({"v": [1.0, 2.0, 30.0, 4.0]}).match_recognize("A B+ C", {"B": "AVG(B.v) < 10"})
    assert few.measures(n="COUNT(B.v)", m="AVG(B.v)", c="C.v").to_pylist() == [
        {"k": "x", "n": 1, "m": 2.0, "c": 30.0}
    ]


_NUMBERS = st.sampled_from([None, -3, -1, 0, 1, 2, 7])
_FLOATS = st.sampled_from([None, NAN, -1.5, -0.0, 0.0, 2.0, float("inf")])
_TEXTS = st.sampled_from([None, "", "a", "b", "é"])


@st.composite
def _expressions(draw: st.DrawFn, depth: int = 3) -> str:
    """Draw a condition over the columns of two rows."""
    if depth == 0 or draw(st.booleans()):
        kind = draw(st.sampled_from(["i", "f", "s"]))
        one, other = (draw(_terms(kind)) for _ in range(2))
        compare = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
        return draw(st.sampled_from([f"{one} {compare} {other}", f"{one} IS NULL"]))
    one, other = (draw(_expressions(depth - 1)) for _ in range(2))
    forms = ["({} AND {})", "({} OR {})", "NOT ({})", "({}) IS NOT TRUE", "({} OR ({}) IS NULL)"]
    return draw(st.sampled_from(forms)).format(one, other)


def _terms(kind: str) -> st.SearchStrategy[str]:
    columns = st.sampled_from([f"A.{kind}", f"B.{kind}"])
    if kind == "s":
        return columns
    sums = st.tuples(columns, st.sampled_from("+-*"), columns).map(lambda t: f"({' '.join(t)})")
    chosen = st.tuples(columns, columns).map(lambda t: f"COALESCE({t[0]}, {t[1]})")
    return st.one_of(columns, columns, sums, chosen)


@given(
    st.lists(st.tuples(_NUMBERS, _FLOATS, _TEXTS), min_size=2, max_size=12),
    _expressions(),
)
def test_conditions_between_rows_are_those_of_one_row(
    rows: list[tuple[Any, ...]], condition: str
) -> None:
    """What is true of two rows is what Spark says of one that has the columns of both."""
    types = {"i": pa.int64(), "f": pa.float64(), "s": pa.string()}
    columns = {
        name: pa.array([row[place] for row in rows], dtype)
        for place, (name, dtype) in enumerate(types.items())
    }
    sides = {"A": slice(0, -1), "B": slice(1, None)}
    both = pa.table(
        {
            f"{side}_{name}": pa.array(column.to_pylist()[part], types[name])
            for side, part in sides.items()
            for name, column in columns.items()
        }
    )
    of_one = condition.replace("A.", "A_").replace("B.", "B_")
    true = compute(of_one, both).to_pylist()
    assert pairs(condition, **columns) == [place + 1 for place, holds in enumerate(true) if holds]


# ---- order, time and ends


def test_rows_of_one_time_come_in_order_or_by_other_columns() -> None:
    rows = keyed({"v": [1, 3, 2], "ts": _times(0, 0, 0)})
    pattern = rows.match_recognize("A B C")
    given_order = pattern.measures(a="A.v", b="B.v", c="C.v").to_pylist()
    assert given_order == [{"k": "x", "a": 1, "b": 3, "c": 2}]
    one = rows.match_recognize("A").then_by("v").measures(a="A.v")
    assert one.column("a").to_pylist() == [1, 2, 3]
    twice = pattern.then_by("k").then_by("v").measures(a="A.v")
    assert twice.column("a").to_pylist() == [1]
    assert (
        "rows of one time by k, v descending"
        in pattern.then_by("k")
        .then_by("v", descending=True)
        .with_outputs()
        .measures(a="A.v")
        .explain()
    )
    by_value = pattern.then_by("v", descending=True).measures(a="A.v", b="B.v", c="C.v")
    assert by_value.to_pylist() == [{"k": "x", "a": 3, "b": 2, "c": 1}]


def test_conditions_may_read_no_column() -> None:
    rows = keyed({"v": [*range(100_000)]})
    counted = rows.match_recognize("A B+ C", {"B": "COUNT(*) < 4"}, after="skip past last row")
    found = counted.measures(a="A.v", c="C.v")
    assert found.num_rows == 25_000
    assert found.slice(0, 1).to_pylist() == [{"k": "x", "a": 0, "c": 3}]


def test_the_order_of_matches_is_that_of_the_rows_that_made_them_complete() -> None:
    rows = keyed({"k": ["x", "y", "y", "x"], "v": [1, 2, 3, 4]})
    found = rows.match_recognize("A B").measures(a="A.v", b="B.v")
    assert found.column("b").to_pylist() == [3, 4]


def test_a_match_is_shorter_than_within() -> None:
    rows = keyed({"v": [1, 2, 3], "ts": _times(0, 10, 21)})
    for within, wanted in (("10 seconds", []), ("11 seconds", [2]), ("12 seconds", [2, 3])):
        found = rows.match_recognize("A B", within=within).measures(b="B.v")
        assert found.column("b").to_pylist() == wanted


def test_late_and_rejected_rows_come_back() -> None:
    outputs = keyed({"v": [1, 2], "ts": pa.array([0, None], pa.timestamp("us", "UTC"))})
    found = outputs.match_recognize("A").with_outputs().measures(v="A.v")
    assert found.result().column("v").to_pylist() == [1]
    assert found.rejected().column("v").to_pylist() == [2]
    metrics = found.metrics().to_pylist()[0]
    assert (metrics["rows"], metrics["fired"], metrics["null_timestamp"]) == (2, 1, 1)


def test_all_rows_are_one_key() -> None:
    rows = pa.table({"v": [1, 2], "ts": _times(0, 1)})
    timed = gw.stream(rows).event_time("ts", IN_ORDER)
    found = timed.match_recognize_all("A B").measures(a="A.v", s="SUM(v)", t="UPPER('x')")
    assert found.to_pylist() == [{"a": 1, "s": 3, "t": "X"}]


def test_columns_may_be_called_as_ours_and_as_variables() -> None:
    rows = keyed({"a b": [1, 0], "A": [5, 6], "__match_0": [1, 2]})
    define = {"B": "B.`a b` < A.`a b` AND A.A = 5 AND B.a + 1 = 7 AND B.__match_0 = 2"}
    found = rows.match_recognize("A B", define).measures(x="A.`a b`", y="B.A * 2", z="A")
    assert found.to_pylist() == [{"k": "x", "x": 1, "y": 12, "z": 6}]


def test_the_order_of_measures_is_another_state() -> None:
    rows = keyed({"v": ["a"]})
    one, other = (
        facts_of(rows.match_recognize("A B").with_outputs().measures(**told).plan)
        for told in (
            {"a": "LAST(COALESCE(A.v, 'x'))", "b": "LAST(COALESCE(A.v, 'y'))"},
            {"b": "LAST(COALESCE(A.v, 'y'))", "a": "LAST(COALESCE(A.v, 'x'))"},
        )
    )
    assert one != other
    spaced = facts_of(rows.match_recognize("A  B").with_outputs().measures(a=" upper( A.v ) ").plan)
    assert spaced == facts_of(
        rows.match_recognize("A B").with_outputs().measures(a="UPPER(A.v)").plan
    )


def test_a_measure_may_be_called_anything() -> None:
    found = keyed({"v": [1]}).match_recognize("A").measures(**{"self": "A.v", "a b": "A.v + 1"})
    assert found.to_pylist() == [{"k": "x", "self": 1, "a b": 2}]


def test_no_rows_give_no_matches() -> None:
    nothing = keyed(pa.table({"v": pa.array([], pa.int64()), "k": pa.array([], pa.string())}))
    found = nothing.match_recognize("A B").measures(a="A.v", d="B.v - A.v", m="MAX(k)")
    assert found.num_rows == 0
    assert found.column_names == ["k", "a", "d", "m"]


def test_the_reference_is_the_same() -> None:
    rows = keyed({"v": [3, 1, 2, 5, 4, 4, 1, 7, 0, 2] * 5})
    define = {"B": "B.v > A.v AND SUM(B.v) < 12", "C": "C.v <= LAST(B.v)"}
    for pattern in ("A B+ C", "A B*? C", "A B{1,2}? C?"):
        matched = rows.match_recognize(pattern, define, within="4 seconds")
        told = {"a": "A.v", "b": "SUM(B.v)", "c": "C.v"}
        assert matched.measures(**told).equals(matched.options(engine="reference").measures(**told))


# ---- what is refused


@pytest.mark.parametrize(
    ("define", "rule"),
    [
        ({"D": "true"}, "variables of the pattern: A, B, C"),
        ({"B": "true", "b": "true"}, "defined once"),
        ({1: "true"}, "variables of the pattern"),
        (["true"], "define is a mapping"),
    ],
)
def test_conditions_are_of_variables(define: Any, rule: str) -> None:
    with pytest.raises(InvalidPatternError, match=rule):
        keyed({"v": [1]}).match_recognize("A B C", define)


@pytest.mark.parametrize(
    ("condition", "rule"),
    [
        ("B.v +", "cannot be parsed"),
        ("B.v", "true or false"),
        ("1.5", "true or false"),
        ("B.v > A.v AND 1.5", "true or false"),
        ("LAST(A.v, 99999999999999999999) > 1", "count up to"),
        ("B.w = 1", "no such column"),
        ("D.v = 1", "no such variable"),
        ("B.v > A.s", "values of the same type"),
        ("B.s + A.s = 'x'", "arithmetic between rows takes numbers"),
        ("PREV(B.v) > 1", "physical offsets are not covered"),
        ("CLASSIFIER() = 'B'", "a match is one row"),
        ("LAST(B.v, A.v) > 1", "a literal number of rows"),
        ("LAST(B.v, -1) > 1", "a literal number of rows"),
        ("LAST(LAST(B.v)) > 1", "cannot be nested"),
        ("LAST(A.v + B.v) > 1", "one variable"),
        ("SUM(A.v + B.v) > 1", "one variable"),
        ("SUM(DISTINCT B.v) > 1", "no DISTINCT"),
        ("STDDEV(B.v) > 1", "SUM, COUNT, AVG, MIN and MAX"),
        ("SUM(B.s) > 1", "arithmetic between rows takes numbers"),
        ("MAX(B.s) > 'a'", "arithmetic between rows takes numbers"),
        ("GREATEST(A.v, B.v) > 1", "other functions take columns of one row"),
        ("B.v > (SELECT 1)", "queries and OVER"),
        ("SUM(B.v) OVER () > 1", "queries and OVER"),
        ("B.d * A.d > 1", "arithmetic between rows takes numbers"),
        ("B.f * A.f > 1", "use CAST"),
        ("CASE A.v WHEN B.v THEN true END", "takes conditions"),
    ],
)
def test_conditions_that_are_not_covered_are_refused_with_their_place(
    condition: str, rule: str
) -> None:
    rows = keyed({"v": [1], "s": ["x"], "d": [Decimal("1.5")], "f": pa.array([1.0], pa.float32())})
    with pytest.raises(SqlError, match=rule) as raised:
        rows.match_recognize("A B C", {"B": condition}).with_outputs().measures(a="A.v")
    assert raised.value.line == 1


@pytest.mark.parametrize(
    ("measure", "rule"),
    [
        ("SUM(A.v", "cannot be parsed"),
        ("D.v", "no such variable"),
        ("A.w", "no such column"),
        ("MATCH_NUMBER()", "no numbers"),
        ("SUM(A.v + B.v)", "one variable"),
        ("COUNT(DISTINCT A.v)", "no DISTINCT"),
        ("STDDEV(A.v)", "SUM, COUNT, AVG, MIN and MAX"),
        ("NEXT(A.v)", "physical offsets are not covered"),
    ],
)
def test_measures_that_are_not_covered_are_refused(measure: str, rule: str) -> None:
    with pytest.raises(QueryError, match=rule):
        keyed({"v": [1]}).match_recognize("A B C").with_outputs().measures(a=measure)


@pytest.mark.parametrize("after", ["skip", "", None, "skip to first D", "past last row"])
def test_after_is_one_of_four(after: Any) -> None:
    with pytest.raises(InvalidPatternError, match="after is one of skip to next row"):
        keyed({"v": [1]}).match_recognize("A B C", after=after)


@pytest.mark.parametrize("after", ["skip to first A", "skip to last A"])
def test_the_search_does_not_stay_where_it_is(after: str) -> None:
    with pytest.raises(InvalidPatternError, match="for ever"):
        keyed({"v": [1]}).match_recognize("A B C", after=after)
    ahead = keyed({"v": [1, 1, 1]}).match_recognize(
        "A+ B", {"A": "A.v = 1"}, after="skip to last A"
    )
    assert ahead.measures(a="A.v").num_rows == 0


def test_a_match_without_the_row_to_skip_to_is_an_error() -> None:
    rows = keyed({"v": [1, 2, 3]}).match_recognize(
        "A B? C", {"B": "B.v > 9"}, after="skip to last B"
    )
    with pytest.raises(SkipError, match="its variable has none"):
        rows.measures(a="A.v")
    looped = keyed({"v": [1, 2, 3]}).match_recognize(
        "A? B C", {"A": "A.v > 9"}, after="skip to first B"
    )
    with pytest.raises(SkipError, match="for ever"):
        looped.measures(b="B.v")


def test_other_mistakes_are_told() -> None:
    rows = keyed({"v": [1], "w": pa.array([[1]])})
    with pytest.raises(InvalidDurationError, match="within some time"):
        rows.match_recognize("A B", within="0 seconds")
    with pytest.raises(QueryError, match="one measure at least"):
        rows.match_recognize("A B").measures()
    with pytest.raises(NameClashError, match="different names"):
        rows.match_recognize("A B").measures(k="A.v")
    with pytest.raises(GpuWindowsError, match="cannot be compared"):
        rows.match_recognize("A B", {"B": "B.w = A.w"}).measures(a="A.v")
    with pytest.raises(QueryError, match="rows need a time"):
        gw.stream(pa.table({"v": [1]})).key_by("v").match_recognize("A").measures(a="A.v")
    with pytest.raises(UnsupportedQueryError, match="no kernel of a device runs a pattern"):
        rows.match_recognize("A", device="cuda").measures(a="A.v")
    with pytest.raises(QueryError):
        rows.match_recognize("A B").then_by("v", descending=[True, False])
    with pytest.raises(ColumnTypeError):
        rows.match_recognize("A B").then_by("w").measures(a="A.v")
