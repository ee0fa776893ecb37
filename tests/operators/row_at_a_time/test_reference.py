"""The reference operator, told as transcripts: what goes in, what comes out, what is left.

Time runs to the right; ``|---)`` is a window, ``o`` a row, ``W`` a watermark.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.functions.window import Collect
from gpu_windows.operators.base import Emission
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.row_at_a_time import output as row_output
from gpu_windows.operators.row_at_a_time.operator import ReferenceOperator
from gpu_windows.planning.own_columns import REASON
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.triggers import CountTrigger, PurgingTrigger
from gpu_windows.vocabulary.windows import SlidingEventTimeWindows, TumblingEventTimeWindows
from tests.examples import examples
from tests.planning.queries import SCHEMA, assigners, query, tables

_BOUNDS = ("window_start", "window_end")
_TS_AND_I = (("ts", pa.int64()), ("i", pa.int64()))

Row = tuple[str | None, int | None, int]


class Transcript:
    """Feeds an operator and writes down what it says."""

    def __init__(self, assigner: Any, **changes: Any) -> None:
        options = Options(engine="reference")
        made = query(assigner, function=Collect(("i",)), keys=("key",), options=options, **changes)
        self.operator = ReferenceOperator(plan(made, bounded=False), trace=True)
        self.counters = Counters()

    def rows(self, *rows: Row) -> list[Any]:
        fields = [{"key": key, "ts": ts, "i": value} for key, ts, value in rows]
        return self.hear(self.operator.process(pa.Table.from_pylist(fields, schema=SCHEMA)))

    def watermark(self, watermark: int) -> list[Any]:
        return self.hear(self.operator.advance_watermark(watermark))

    def hear(self, emissions: Any) -> list[Any]:
        said: list[Any] = []
        for emission in emissions:
            assert isinstance(emission, Emission)
            self.counters += emission.counters
            fields = ("key", "window_start", "i", "fired")
            said += [tuple(map(row.get, fields)) for row in emission.results.to_pylist()]
            said += [(row[REASON], row["i"]) for row in emission.late.to_pylist()]
        return said

    def left(self) -> int:
        return sum(self.operator.state_size().values())


def test_a_window_fires_at_its_last_tick() -> None:
    #  0         10
    #  |---------)
    #  o1   o2   |o3
    #           W8 W9
    told = Transcript(TumblingEventTimeWindows(10))
    assert told.rows(("a", 0, 1), ("a", 9, 2), ("a", 10, 3)) == []
    assert told.watermark(8) == []
    assert told.watermark(9) == [("a", 0, [1, 2], "event_time")]
    assert told.watermark(9) == told.watermark(3) == []
    assert told.rows(("a", 9, 4)) == [("late", 4)]
    assert told.watermark(LONG_MAX) == [("a", 10, [3], "event_time")]
    assert told.left() == 0
    assert told.counters == Counters(rows=4, late=1, fired=2)


def test_a_late_row_within_lateness_fires_by_itself() -> None:
    #  0         10        15
    #  |---------)- - - - -|      lateness 5: accepted at W13, late at W14
    told = Transcript(TumblingEventTimeWindows(10), allowed_lateness=5)
    told.rows(("a", 1, 1))
    assert told.watermark(9) == [("a", 0, [1], "event_time")]
    assert told.rows(("a", 2, 2), ("a", 3, 3)) == [
        ("a", 0, [1, 2], "element"),
        ("a", 0, [1, 2, 3], "element"),
    ]
    assert told.watermark(13) == []
    assert told.rows(("a", 4, 4)) == [("a", 0, [1, 2, 3, 4], "element")]
    assert told.watermark(14) == []
    assert told.rows(("a", 5, 5)) == [("late", 5)]
    assert told.left() == 0


def test_lateness_without_end_does_not_overflow() -> None:
    told = Transcript(TumblingEventTimeWindows(10), allowed_lateness=LONG_MAX)
    told.rows(("a", 1, 1))
    told.watermark(10**15)
    assert told.rows(("a", 2, 2)) == [("a", 0, [1, 2], "element")]


def test_a_row_is_late_only_if_all_its_windows_are() -> None:
    #  0    5    10   15
    #  |---------)              fired at W9
    #       |---------)
    #        o6                 comes after W9: only into [5, 15)
    told = Transcript(SlidingEventTimeWindows(10, 5))
    told.rows(("a", 7, 1))
    assert told.watermark(9) == [("a", 0, [1], "event_time")]
    assert told.rows(("a", 6, 2)) == []
    assert told.watermark(14) == [("a", 5, [1, 2], "event_time")]
    assert told.rows(("a", 9, 3)) == [("late", 3)]


def test_rows_in_gaps_vanish_counted_until_they_are_late() -> None:
    #  0   3      7   10
    #  |---)      |---)
    #       o5
    told = Transcript(SlidingEventTimeWindows(3, 7))
    assert told.rows(("a", 5, 1)) == []
    told.watermark(4)
    assert told.rows(("a", 5, 2)) == []
    told.watermark(5)
    assert told.rows(("a", 5, 3)) == [("late", 3)]
    assert told.counters == Counters(rows=3, gap=2, late=1)


def test_purging_leaves_only_what_comes_after() -> None:
    told = Transcript(TumblingEventTimeWindows(10), trigger=PurgingTrigger(CountTrigger(2)))
    said = told.rows(*(("a", 1, value) for value in range(5)))
    assert said == [("a", 0, [0, 1], "element"), ("a", 0, [2, 3], "element")]
    assert told.watermark(LONG_MAX) == []
    assert told.left() == 0


def test_count_trigger_visits_overlapping_windows_from_the_latest() -> None:
    told = Transcript(SlidingEventTimeWindows(10, 5), trigger=CountTrigger(1))
    assert told.rows(("a", 7, 1)) == [("a", 5, [1], "element"), ("a", 0, [1], "element")]


def test_null_is_a_key_of_its_own() -> None:
    told = Transcript(TumblingEventTimeWindows(10))
    told.rows((None, 1, 1), ("a", 1, 2), (None, 2, 3))
    said = told.watermark(LONG_MAX)
    assert sorted(said, key=str) == [
        ("a", 0, [2], "event_time"),
        (None, 0, [1, 3], "event_time"),
    ]


def test_equal_keys_are_one_key() -> None:
    schema = pa.schema([("x", pa.float64()), ("s", pa.struct([("n", pa.int64())])), *_TS_AND_I])
    rows = [
        {"x": math.nan, "s": {"n": 1}, "ts": 1, "i": 1},
        {"x": -math.nan, "s": {"n": 1}, "ts": 2, "i": 2},
        {"x": -0.0, "s": None, "ts": 3, "i": 3},
        {"x": 0.0, "s": None, "ts": 4, "i": 4},
        {"x": 0.0, "s": {"n": None}, "ts": 5, "i": 5},
    ]
    made = query(
        TumblingEventTimeWindows(10),
        schema,
        keys=("x", "s"),
        aggregates={},
        function=Collect(("i",)),
        options=Options(engine="reference"),
    )
    operator = ReferenceOperator(plan(made, bounded=True))
    said = [*operator.process(pa.Table.from_pylist(rows, schema=schema))]
    said += operator.advance_watermark(LONG_MAX)
    results = pa.concat_tables([emission.results for emission in said]).to_pylist()
    assert [row["i"] for row in results] == [[1, 2], [3, 4], [5]]
    assert math.isnan(results[0]["x"])
    assert [row["s"] for row in results] == [{"n": 1}, None, {"n": None}]


def test_late_rows_come_back_whole() -> None:
    #  0         10
    #  |---------)    o5 comes after W9
    told = Transcript(TumblingEventTimeWindows(10))
    told.watermark(9)
    batch = pa.Table.from_pylist([{"key": "a", "ts": 5, "i": 1, "text": "x"}], schema=SCHEMA)
    batch = batch.append_column("extra", pa.array([1.5]))
    (emission,) = told.operator.process(batch)
    assert emission.late.drop_columns([REASON]).equals(batch)
    assert emission.results.schema.names == ["key", *_BOUNDS, "i", "fired", "fired_time"]


def test_nothing_in_nothing_out() -> None:
    told = Transcript(TumblingEventTimeWindows(10))
    assert list(told.operator.process(SCHEMA.empty_table())) == []
    assert list(told.operator.advance_watermark(5)) == []
    assert list(told.operator.advance_watermark(LONG_MAX)) == []


def test_many_results_come_in_several_emissions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_output, "EMISSION_ROWS", 2)
    told = Transcript(TumblingEventTimeWindows(10))
    told.rows(*(("a", ts, ts) for ts in (0, 10, 20, 30, 40)))
    emissions = list(told.operator.advance_watermark(LONG_MAX))
    assert [len(emission.results) for emission in emissions] == [2, 2, 1]
    assert [emission.counters.fired for emission in emissions] == [2, 2, 1]


@examples(50)
@given(assigners(), tables(most=25), st.lists(st.integers(-80, 80), max_size=4), st.integers(0, 9))
def test_each_row_is_used_or_counted_and_nothing_stays(
    assigner: Any, table: pa.Table, watermarks: list[int], lateness: int
) -> None:
    at = table.schema.get_field_index("i")
    table = table.set_column(at, SCHEMA.field("i"), pa.array(range(len(table)), pa.int64()))
    told = Transcript(assigner, allowed_lateness=lateness)
    said: list[Any] = []
    for index, watermark in enumerate([*watermarks, LONG_MAX]):
        length = 5 if index < len(watermarks) else None
        said += told.hear(told.operator.process(table.slice(index * 5, length)))
        said += told.hear(told.operator.advance_watermark(watermark))
    used = {i for line in said if len(line) == 4 for i in line[2]}
    given_back = {line[1] for line in said if len(line) == 2}
    counted = told.counters
    assert not used & given_back
    assert len(given_back) == counted.late + counted.null_timestamp
    assert len(used) + len(given_back) + counted.gap == counted.rows == len(table)
    assert told.left() == 0


def test_rows_without_a_usable_time_come_back() -> None:
    told = Transcript(TumblingEventTimeWindows(10))
    said = told.rows(("a", None, 1), ("a", LONG_MAX, 2), ("a", LONG_MIN, 3), ("a", 0, 4))
    assert said == [
        ("null_timestamp", 1),
        ("out_of_range_timestamp", 2),
        ("out_of_range_timestamp", 3),
    ]
    assert told.counters == Counters(rows=4, null_timestamp=1, out_of_range_timestamp=2)


@pytest.mark.parametrize("lateness", [0, 3, LONG_MAX])
@pytest.mark.parametrize("trigger", [CountTrigger(3), PurgingTrigger(CountTrigger(2))])
def test_nothing_is_left_behind(lateness: int, trigger: Any) -> None:
    told = Transcript(SlidingEventTimeWindows(10, 3), trigger=trigger, allowed_lateness=lateness)
    for ts in range(-50, 50, 7):
        told.rows(("a", ts, ts), (None, ts + 1, ts))
        told.watermark(ts)
    assert told.left() > 0
    told.watermark(LONG_MAX)
    assert not any(told.operator.state_size().values())
