"""Types that differ in the width of their offsets alone, from one start to the next."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import StateMismatchError
from gpu_windows.operators.state.schemas import concat_rows, plain_type
from gpu_windows.planning.facts import describe_changes, facts_of
from gpu_windows.planning.query import Query
from gpu_windows.rules import LONG_MAX
from tests.operators.state.restarted import Restarted

MONOTONOUS = gw.WatermarkStrategy.for_monotonous_timestamps()
TICKS = timedelta(microseconds=40)


def schema(*, large: bool) -> pa.Schema:
    text, data = (pa.large_string(), pa.large_binary()) if large else (pa.string(), pa.binary())
    tags = pa.large_list(text) if large else pa.list_(text)
    fields = [("k", text), ("ts", pa.int64()), ("seq", pa.int64()), ("text", text), ("data", data)]
    return pa.schema([*fields, ("tags", tags)])


def rows(count: int = 80) -> list[dict[str, Any]]:
    return [
        {
            "k": "abc"[number % 3],
            "ts": 2 * number,
            "seq": number,
            "text": None if number % 7 == 0 else f"text {number % 5}",
            "data": bytes([number]),
            "tags": [f"tag {number % 4}"] * (number % 3),
        }
        for number in range(count)
    ]


def keyed(*, large: bool) -> gw.typing.KeyedStream:
    table = pa.Table.from_pylist(rows(), schema(large=large))
    return gw.stream(table).event_time("ts", MONOTONOUS).key_by("k")


def windows(stream: gw.typing.KeyedStream, assigner: Any, **given: gw.typing.Aggregate) -> Query:
    return stream.window(assigner).arrival_order("seq").with_outputs().aggregate(**given).plan.query


LISTS = {"texts": gw.collect_list("text"), "tags": gw.collect_list("tags")}
PICKS = {"first": gw.first("text"), "last": gw.last("tags"), "by": gw.arg_max("data", "seq")}
QUERIES: dict[str, Callable[[gw.typing.KeyedStream], Query]] = {
    "picks of slices": lambda k: windows(k, gw.SlidingEventTimeWindows(60, 20), **PICKS),
    "rows of slices": lambda k: windows(k, gw.SlidingEventTimeWindows(60, 20), **LISTS),
    "sessions": lambda k: windows(k, gw.EventTimeSessionWindows(50), **LISTS, n=gw.count()),
    "sketches": lambda k: windows(
        k, gw.TumblingEventTimeWindows(50), n=gw.approx_count_distinct("text")
    ),
    "counts": lambda k: (
        k.count_window(8).arrival_order("seq").with_outputs().aggregate(**PICKS).plan.query
    ),
    "over": lambda k: (
        k.over(gw.Range(TICKS))
        .arrival_order("seq")
        .with_outputs()
        .aggregate(["text", "tags"], **PICKS)
        .plan.query
    ),
    "over rows": lambda k: (
        k.over(gw.Rows(4))
        .arrival_order("seq")
        .with_outputs()
        .aggregate(["data"], first=gw.first("text"))
        .plan.query
    ),
    "over all": lambda k: (
        k.over(gw.Range())
        .arrival_order("seq")
        .with_outputs()
        .aggregate(["data"], first=gw.first("text"))
        .plan.query
    ),
    "top": lambda k: (
        k.window(gw.TumblingEventTimeWindows(50))
        .arrival_order("seq")
        .with_outputs()
        .top(2, ["text"], columns=["data", "tags"])
        .plan.query
    ),
    "reference": lambda k: (
        k.window(gw.TumblingEventTimeWindows(50))
        .arrival_order("seq")
        .options(engine="reference")
        .with_outputs()
        .aggregate(**LISTS)
        .plan.query
    ),
}


def run(made: Callable[[gw.typing.KeyedStream], Query], widths: list[bool]) -> list[str]:
    """Return the results of starts of such widths, of as many rows each."""
    query = Restarted(made(keyed(large=widths[0])))
    step, found = len(rows()) // len(widths), []
    for number, large in enumerate(widths):
        before = facts_of(query.plan)
        query.start(made(keyed(large=large)))
        assert not [*describe_changes(before, facts_of(query.plan))]
        part = rows()[number * step : (number + 1) * step]
        for begin in range(0, step, 7):
            some = part[begin : begin + 7]
            found += query.micro_batch(some, some[-1]["ts"] - 1)
    found += query.micro_batch([], LONG_MAX)
    return sorted(map(repr, found))


@pytest.mark.parametrize("kind", QUERIES)
def test_offsets_may_be_wider_or_narrower_from_start_to_start(kind: str) -> None:
    made = QUERIES[kind]
    wanted = run(made, [False] * 4)
    assert len(wanted) >= 3
    assert run(made, [False, True, True, False]) == wanted
    assert run(made, [True, False, True, False]) == wanted


def test_a_column_may_have_the_name_of_one_of_ours() -> None:
    """Lists of rows are called ``rows`` where keys are kept: that one stays as it is."""

    def made(*, large: bool) -> Query:
        numbers = pa.large_list(pa.int64()) if large else pa.list_(pa.int64())
        fields = [("k", pa.string()), ("ts", pa.int64()), ("seq", pa.int64()), ("rows", numbers)]
        stream = gw.stream(pa.schema(fields).empty_table()).event_time("ts", MONOTONOUS)
        lists = gw.collect_list("rows")
        windowed = stream.key_by("k").window(gw.EventTimeSessionWindows(9))
        return (
            windowed.arrival_order("seq")
            .evictor(gw.CountEvictor.of(5))
            .with_outputs()
            .aggregate(all=lists)
            .plan.query
        )

    query = Restarted(made(large=False), 1)
    some = [{"k": "a", "ts": 2 * at, "seq": at, "rows": [at, at]} for at in range(6)]
    query.micro_batch(some[:3], 0)
    query.start(made(large=True), 1)
    query.micro_batch(some[3:], 1)
    (found,) = query.micro_batch([], LONG_MAX)
    assert found["all"] == [[at, at] for at in range(1, 6)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pa.int32(), pa.int64()),
        (pa.decimal128(10, 2), pa.decimal128(12, 2)),
        (pa.string(), pa.binary()),
        (pa.list_(pa.int32()), pa.list_(pa.int64())),
        (pa.struct([("a", pa.string())]), pa.struct([("b", pa.string())])),
    ],
    ids=str,
)
def test_types_of_other_values_are_refused(before: pa.DataType, after: pa.DataType) -> None:
    """On the driver, by the facts of the query; in a log besides, whoever wrote it."""

    def made(dtype: pa.DataType) -> Query:
        fields = [("k", pa.string()), ("ts", pa.int64()), ("v", dtype)]
        stream = gw.stream(pa.schema(fields).empty_table()).event_time("ts", MONOTONOUS)
        windowed = stream.key_by("k").window(gw.TumblingEventTimeWindows(50))
        return windowed.with_outputs().aggregate(all=gw.collect_list("v")).plan.query

    was, is_ = (facts_of(Restarted(made(dtype)).plan) for dtype in (before, after))
    (columns,) = [text for text in describe_changes(was, is_) if text.startswith("columns.v")]
    assert " was " in columns
    assert ", is " in columns
    tables = [pa.table({"v": pa.nulls(1, dtype)}) for dtype in (before, after)]
    with pytest.raises(StateMismatchError, match="keeps its type") as error:
        concat_rows(tables)
    assert f"was {before}, is {after}" in str(error.value)
    assert error.value.column == "v"


def test_what_was_stored_first_says_the_type() -> None:
    tables = [
        pa.table({"a": pa.array(["x"], dtype), "b": pa.array([["y"]], pa.list_(dtype))})
        for dtype in (pa.string(), pa.large_string())
    ]
    for ordered in (tables, tables[::-1]):
        found = concat_rows(ordered)
        assert found.schema.types == ordered[0].schema.types
        assert found.to_pylist() == [{"a": "x", "b": ["y"]}] * 2


def test_plain_types_are_within_structs_and_maps() -> None:
    large = pa.struct([("m", pa.map_(pa.large_string(), pa.large_list(pa.large_binary())))])
    small = pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.binary())))])
    assert plain_type(large) == small
