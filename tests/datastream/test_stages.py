"""Queries that go on from the results of others, on Arrow tables: times of results, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import NameClashError, QueryError, UnsupportedQueryError

SECOND = 1_000_000
IN_ORDER = gw.WatermarkStrategy.for_monotonous_timestamps()
MINUTE = gw.TumblingEventTimeWindows.of("1 minute")
HOUR = gw.TumblingEventTimeWindows.of("1 hour")


def rows(*given: tuple[int, str, int]) -> pa.Table:
    """Rows of a second, a key and a value."""
    at, keys, values = zip(*given, strict=True)
    ticks = pa.array([second * SECOND for second in at], pa.timestamp("us", "UTC"))
    return pa.table({"ts": ticks, "k": keys, "v": values})


def keyed(source: Any) -> gw.typing.KeyedStream:
    return gw.stream(source).event_time("ts", IN_ORDER).key_by("k")


ROWS = rows((1, "a", 1), (2, "b", 2), (61, "a", 3), (3_601, "a", 4), (3_602, "c", 5))


def times(outputs: gw.typing.Outputs, *columns: str) -> list[Any]:
    """Results as the next query sees them: its time in microseconds, and columns."""
    seen = gw.stream_results(outputs)
    collected = seen.window_all(gw.TumblingEventTimeWindows.of("365 days"))
    found = collected.collect_lists(seen.time, *columns).to_pylist()
    assert len(found) == 1
    ticks = [round(at.timestamp() * SECOND) for at in found[0][seen.time]]
    return sorted(zip(ticks, *(found[0][name] for name in columns), strict=True))


def test_windows_of_windows() -> None:
    minutes = keyed(ROWS).window(MINUTE).with_outputs().aggregate(n=gw.count(), total=gw.sum("v"))
    hours = gw.stream_results(minutes).key_by("k").window(HOUR)
    found = hours.aggregate(minutes=gw.count(), total=gw.sum("total"))
    assert [(r["k"], r["minutes"], r["total"]) for r in found.to_pylist()] == [
        ("a", 2, 4), ("b", 1, 2), ("a", 1, 4), ("c", 1, 5)
    ]  # fmt: skip


def test_a_result_of_a_window_happens_at_its_last_tick() -> None:
    minutes = keyed(ROWS).window(MINUTE).with_outputs().aggregate(n=gw.count())
    ends = [60, 60, 120, 3_660, 3_660]
    assert times(minutes, "n") == [(end * SECOND - 1, 1) for end in ends]


def test_so_does_one_of_a_window_join() -> None:
    joined = keyed(ROWS).join(keyed(ROWS)).window(MINUTE).with_outputs().select(["v"], ["v"])
    ends = [60, 60, 120, 3_660, 3_660]
    found = times(joined, "left_v")
    assert found == [(end * SECOND - 1, v) for end, v in zip(ends, range(1, 6), strict=True)]


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        ("inner", [(2, 1, 7), (5, 2, 8)]),
        ("left", [(2, 1, 7), (5, 2, 8), (100, 3, None)]),
        ("full", [(2, 1, 7), (5, 2, 8), (50, None, 9), (100, 3, None)]),
    ],
)
def test_a_pair_happens_when_its_later_row_does(how: Any, wanted: list[Any]) -> None:
    left = rows((1, "a", 1), (5, "a", 2), (100, "a", 3))
    right = rows((2, "a", 7), (4, "a", 8), (50, "a", 9))
    joined = keyed(left).interval_join(keyed(right)).between("-1 second", "1 second")
    outputs = joined.with_outputs().select(["v"], ["v"], how=how)
    found = times(outputs, "left_v", "right_v")
    assert found == [(second * SECOND, *values) for second, *values in wanted]
    assert outputs.result().column_names == ["k", "left_v", "right_v"]


def test_a_left_row_without_its_partner_happens_when_it_does() -> None:
    joined = keyed(ROWS).interval_join(keyed(ROWS)).between("0 seconds", "1 second")
    assert [at for (at,) in times(joined.with_outputs().select(["v"], how="semi"))] == [
        second * SECOND for second in (1, 2, 61, 3_601, 3_602)
    ]


def test_a_row_over_frames_happens_when_it_does() -> None:
    over = keyed(ROWS).over(gw.Range("1 minute")).with_outputs().aggregate(["v"], total=gw.sum("v"))
    seconds = (1, 2, 61, 3_601, 3_602)
    assert times(over, "total") == [
        (s * SECOND, total) for s, total in zip(seconds, (1, 2, 4, 4, 5), strict=True)
    ]


class Twice(gw.functions.KeyedProcessFunction):
    """Gives a row at once, and a minute later."""

    def process_element(self, row: Any, context: Any) -> Iterator[dict[str, Any]]:
        context.register_event_time_timer(context.timestamp + 60 * SECOND)
        yield {"v": row["v"]}

    def on_timer(self, time: int, context: Any) -> Iterator[dict[str, Any]]:
        yield {"v": -1}


def test_what_a_function_gives_happens_with_its_row_or_timer() -> None:
    made = keyed(ROWS).with_outputs().process(Twice(), ["v"], output=pa.schema([("v", pa.int64())]))
    seconds = (1, 2, 61, 3_601, 3_602)
    of_rows = [(s * SECOND, v) for s, v in zip(seconds, range(1, 6), strict=True)]
    of_timers = [((s + 60) * SECOND, -1) for s in seconds]
    assert times(made, "v") == sorted(of_rows + of_timers)
    assert made.result().column_names == ["k", "v"]


def test_joins_of_windows() -> None:
    minutes = keyed(ROWS).window(MINUTE).with_outputs().aggregate(n=gw.count())
    hours = keyed(ROWS).window(HOUR).with_outputs().aggregate(n=gw.count())
    one, other = (gw.stream_results(each).key_by("k") for each in (minutes, hours))
    joined = one.interval_join(other).between("0 seconds", "1 hour")
    found = joined.select(["n"], ["n"]).to_pylist()
    assert sorted((r["k"], r["left_n"], r["right_n"]) for r in found) == [
        ("a", 1, 1), ("a", 1, 2), ("a", 1, 2), ("b", 1, 1), ("c", 1, 1)
    ]  # fmt: skip


def test_what_is_selected_goes_on_and_its_time_with_it() -> None:
    minutes = keyed(ROWS).window(MINUTE).with_outputs().aggregate(n=gw.count(), total=gw.sum("v"))
    chosen = minutes.select("k", double="total * 2", where="total > 1").select(
        "double", where="k <> 'c'"
    )
    ends = (60, 120, 3_660)
    assert times(chosen, "double") == [
        (end * SECOND - 1, double) for end, double in zip(ends, (4, 6, 8), strict=True)
    ]
    seen = gw.stream_results(chosen)
    assert (seen.source.user_columns, seen.time) == (("double", "window_time"), "window_time")


def test_pairs_and_rows_over_frames_are_selected_with_their_times() -> None:
    joined = keyed(ROWS).interval_join(keyed(ROWS)).between("0 seconds", "1 second")
    pairs = (
        joined.with_outputs().select(["v"], ["v"]).select(v="left_v + right_v", where="left_v > 3")
    )
    assert times(pairs, "v") == [(3_601 * SECOND, 8), (3_602 * SECOND, 10)]
    over = keyed(ROWS).over(gw.Range("1 minute")).with_outputs().aggregate(["v"], total=gw.sum("v"))
    assert times(over.select("total", where="k = 'a'"), "total") == [
        (s * SECOND, total) for s, total in zip((1, 61, 3_601), (1, 4, 4), strict=True)
    ]


def test_rows_of_a_stage_are_chosen_and_have_more_columns() -> None:
    minutes = keyed(ROWS).window(MINUTE).with_outputs().aggregate(n=gw.count(), total=gw.sum("v"))
    rows_of = gw.stream_results(minutes).where("total > 1").with_columns(half="total / 2")
    found = rows_of.key_by("k").window(HOUR).aggregate(half=gw.sum("half"))
    assert [(r["k"], r["half"]) for r in found.to_pylist()] == [
        ("b", 1.0), ("a", 1.5), ("a", 2.0), ("c", 2.5)
    ]  # fmt: skip


def test_the_time_of_results_keeps_its_name() -> None:
    minutes = keyed(ROWS).window(MINUTE).with_outputs().aggregate(n=gw.count())
    with pytest.raises(QueryError, match=r"window_time is the time .* another name, got Window_"):
        gw.stream_results(minutes.select("k", Window_Time="window_end"))
    over = keyed(ROWS).over(gw.Range("1 minute")).with_outputs().aggregate(["v"], total=gw.sum("v"))
    with pytest.raises(QueryError, match="ts is the time of the results"):
        gw.stream_results(over.select("v", ts="v"))
    assert gw.stream_results(over.select("v", "ts")).time == "ts"


def test_columns_that_differ_in_case_alone_are_refused() -> None:
    timed = gw.stream(ROWS).event_time("ts", IN_ORDER)
    with pytest.raises(QueryError, match="the event time is chosen by event_time"):
        timed.with_columns(TS="v")
    with pytest.raises(NameClashError, match="columns have different names"):
        timed.with_columns(V="v")


def test_results_without_a_time_are_refused() -> None:
    windowed = keyed(ROWS).count_window(2).with_outputs().aggregate(n=gw.count())
    with pytest.raises(UnsupportedQueryError, match="have no time"):
        gw.stream_results(windowed)
    with pytest.raises(UnsupportedQueryError, match="a top of keys changes them"):
        gw.stream_results(keyed(ROWS).with_outputs().top(1, "v"))
    untimed = gw.stream(ROWS).key_by("k")
    made = untimed.with_outputs().process(Twice(), ["v"], output=pa.schema([("v", pa.int64())]))
    with pytest.raises(UnsupportedQueryError, match="results need a time"):
        gw.stream_results(made)


@pytest.mark.parametrize("name", ["", "a b", "a/b", 5])
def test_a_stage_has_a_name_for_a_folder(name: Any) -> None:
    minutes = keyed(ROWS).window(MINUTE).with_outputs().aggregate(n=gw.count())
    with pytest.raises(QueryError, match="a stage's name"):
        gw.stream_results(minutes, name)


def test_it_takes_outputs() -> None:
    minutes: Any = keyed(ROWS).window(MINUTE).aggregate(n=gw.count())
    with pytest.raises(QueryError, match="stream_results takes all outputs"):
        gw.stream_results(minutes)
