"""Results that begin empty where a query is started again: of earlier rows they have nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import timedelta
from statistics import stdev
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import StateCorruptedError, StateMismatchError
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.added_results import with_rows_since
from gpu_windows.planning.query import Query
from gpu_windows.rules import LONG_MAX
from tests.operators.state.restarted import Restarted, Rows

pytest.importorskip("datasketches", reason="no wheels for Python 3.14; of the extra `sketches`")

SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("ts", pa.int64()),
        ("v", pa.int64()),
        pa.field("sure", pa.float64(), nullable=False),
        ("text", pa.string()),
        ("seq", pa.int64()),
    ]
)
MONOTONOUS = gw.WatermarkStrategy.for_monotonous_timestamps()
#: Where the query is started again, and how many rows there are.
CUT, COUNT = 64, 128


def rows_of(count: int = COUNT) -> list[dict[str, Any]]:
    """Rows in order of time, of three keys."""
    rng = np.random.default_rng(5)
    return [
        {
            "k": "abc"[number % 3],
            "ts": 2 * number,
            "v": None if rng.random() < 0.2 else int(rng.integers(-50, 50)),
            "sure": float(rng.integers(1, 9)),
            "text": str(rng.choice(["x", "y", "z"])),
            "seq": number,
        }
        for number in range(count)
    ]


def keyed() -> gw.typing.KeyedStream:
    rows = pa.Table.from_pylist(rows_of(), SCHEMA)  # which columns have nulls is seen there
    timed = gw.stream(rows).event_time("ts", MONOTONOUS)
    return timed.key_by("k")


def windows(
    made: Callable[[gw.typing.KeyedStream], gw.typing.WindowedStream], **given: Any
) -> Query:
    return made(keyed()).arrival_order("seq").with_outputs().aggregate(**given).plan.query


OLD = {"n": gw.count(), "sum": gw.sum("v")}
#: New aggregates: what makes them of the rows from the restart on. Several share partials with
#: those that are old, were they of all rows.
NEW: Mapping[str, tuple[gw.typing.Aggregate, Callable[[list[Any]], Any], str]] = {
    "later": (gw.count(), len, "seq"),
    "total": (gw.sum("sure"), lambda of: sum(of) if of else None, "sure"),
    "mean": (gw.mean("v"), lambda of: sum(of) / len(of) if of else None, "v"),
    "certain": (gw.mean("sure"), lambda of: sum(of) / len(of) if of else None, "sure"),
    "least": (gw.min("v"), lambda of: min(of, default=None), "v"),
    "last": (gw.last("text"), lambda of: of[-1] if of else None, "text"),
    "spread": (gw.stddev("v"), lambda of: stdev(of) if len(of) > 1 else None, "v"),
    "kinds": (gw.approx_count_distinct("text"), lambda of: len({*of}), "text"),
}
AGGREGATES = {name: aggregate for name, (aggregate, *_) in NEW.items()}
KINDS: dict[str, Callable[[gw.typing.KeyedStream], gw.typing.WindowedStream]] = {
    "tumbling": lambda k: k.window(gw.TumblingEventTimeWindows(50)),
    "sliding": lambda k: k.window(gw.SlidingEventTimeWindows(60, 20)),
    "cumulative": lambda k: k.window(gw.CumulativeEventTimeWindows(60, 20)),
    "early": lambda k: k.window(gw.TumblingEventTimeWindows(50)).trigger(
        gw.PurgingTrigger.of(gw.EventTimeTrigger())
    ),
    "late": lambda k: k.window(gw.TumblingEventTimeWindows(50)).allowed_lateness(
        timedelta(microseconds=1)
    ),
}


def run(query: Restarted, rows: Rows, step: int = 7) -> list[dict[str, Any]]:
    """Return the results of rows in micro-batches of a few."""
    found: list[dict[str, Any]] = []
    for begin_ in range(0, len(rows), step):
        part = rows[begin_ : begin_ + step]
        found += query.micro_batch(part, part[-1]["ts"] - 1)
    return found


def check(results: Rows, rows: Rows, cut: int = CUT, new: Mapping[str, Any] = NEW) -> int:
    """Compare results with what rows give; return of how many windows some rows were earlier."""
    mixed = 0
    for result in results:
        inside = [
            row
            for row in rows
            if row["k"] == result["k"]
            and result["window_start"] <= row["ts"] < result["window_end"]
        ]
        values = [row["v"] for row in inside if row["v"] is not None]
        assert (result["n"], result["sum"]) == (len(inside), sum(values) if values else None)
        later = [row for row in inside if row["seq"] >= cut]
        for name, (_, wanted, column) in new.items():
            expected = wanted([row[column] for row in later if row[column] is not None])
            same = result[name] == expected
            assert same or math.isclose(result[name], expected), (name, result, expected)
        mixed += 0 < len(later) < len(inside)
    return mixed


@pytest.mark.parametrize("shards", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_an_aggregate_has_the_rows_from_the_restart_on(kind: str, shards: int) -> None:
    """Also with other shards at the same start; new ones stand before the old ones, too."""
    rows, made = rows_of(), KINDS[kind]
    query = Restarted(windows(made, **OLD))
    before = run(query, rows[:CUT])
    first, *rest = AGGREGATES
    new = {first: AGGREGATES[first], **OLD, **{name: AGGREGATES[name] for name in rest}}
    assert query.start(windows(made, **new), shards) == [first, *rest]
    results = run(query, rows[CUT:]) + query.micro_batch([], LONG_MAX)
    assert check(results, rows) >= 3
    assert {*before[0]} == {"k", "window_start", "window_end", "n", "sum"}
    ends = max(result["window_start"] for result in results)
    assert ends > rows[CUT]["ts"], "some windows begin later, and are complete"


@pytest.mark.parametrize("kind", ["tumbling", "late"])
def test_a_restart_after_that_loses_nothing(kind: str) -> None:
    """What began is in state, so another start with it goes on; another one begins beside it."""
    rows, made = rows_of(), KINDS[kind]
    query = Restarted(windows(made, **OLD))
    run(query, rows[:CUT])
    one = {"total": gw.sum("sure")}
    assert query.start(windows(made, **OLD, **one)) == ["total"]
    results = run(query, rows[CUT:70])
    assert query.start(windows(made, **OLD, **one)) == []
    results += run(query, rows[70:76])
    two = {**one, "certain": gw.mean("sure")}
    assert query.start(windows(made, **OLD, **two), 3) == ["certain"]
    assert query.since == {"total": 1, "certain": 2}
    more = run(query, rows[76:]) + query.micro_batch([], LONG_MAX)
    check([*results, *more], rows, new={"total": NEW["total"]})
    assert check(more, rows, 76, {"certain": NEW["certain"]}) > 0


def test_sessions_of_partials_begin_empty() -> None:
    def made(stream: gw.typing.KeyedStream) -> gw.typing.WindowedStream:
        return stream.window(gw.EventTimeSessionWindows(8))

    rows = [row for row in rows_of() if row["seq"] % 30 < 24]
    cut = next(at for at, row in enumerate(rows) if row["seq"] >= CUT + 6)
    query = Restarted(windows(made, **OLD))
    run(query, rows[:cut])
    new = {name: AGGREGATES[name] for name in ("later", "total", "mean", "spread")}
    query.start(windows(made, **OLD, **new), 3)
    results = run(query, rows[cut:]) + query.micro_batch([], LONG_MAX)
    mine = {name: NEW[name] for name in new}
    assert check(results, rows, rows[cut]["seq"], mine) == 3


@pytest.mark.parametrize("kind", ["sliding", "sessions"])
def test_rows_that_are_kept_lack_the_new_column(kind: str) -> None:
    """A list needs the rows, so these are kept: a column that was not is null in earlier ones."""
    assigner: Any = gw.SlidingEventTimeWindows(60, 20)
    if kind == "sessions":
        assigner = gw.EventTimeSessionWindows(8)

    def made(stream: gw.typing.KeyedStream) -> gw.typing.WindowedStream:
        return stream.window(assigner)

    old = {**OLD, "all": gw.collect_list("seq")}
    rows = [row for row in rows_of() if row["seq"] % 30 < 24]
    cut = next(at for at, row in enumerate(rows) if row["seq"] >= CUT + 6)
    query = Restarted(windows(made, **old))
    run(query, rows[:cut])
    new = {"texts": gw.collect_list("text"), "certain": gw.mean("sure"), "later": gw.count("text")}
    query.start(windows(made, **old, **new), 3)
    results = run(query, rows[cut:]) + query.micro_batch([], LONG_MAX)
    lists = {"texts": (None, list, "text"), "later": (None, len, "text"), "certain": NEW["certain"]}
    assert check(results, rows, rows[cut]["seq"], lists) >= 3
    for result in results:
        inside = [row["seq"] for row in rows if row["k"] == result["k"]]
        assert {*result["all"]} <= {*inside}
        assert len(result["all"]) == result["n"]


def test_windows_of_counted_rows_begin_empty() -> None:
    def made(stream: gw.typing.KeyedStream) -> gw.typing.WindowedStream:
        return stream.count_window(8)

    rows = rows_of()
    query = Restarted(windows(made, **OLD))
    run(query, rows[:CUT])
    query.start(windows(made, **OLD, later=gw.count(), total=gw.sum("sure")), 3)
    results = run(query, rows[CUT:])
    for key in "abc":
        mine = [row for row in rows if row["k"] == key]
        found = [(each["n"], each["later"], each["total"]) for each in results if each["k"] == key]
        groups = [mine[at : at + 8] for at in range(0, len(mine) - 7, 8)]
        later = [[row["sure"] for row in group if row["seq"] >= CUT] for group in groups]
        assert found == [(8, len(each), sum(each)) for each in later if each]
        assert any(0 < len(each) < 8 for each in later)


FRAMES = {
    "time": gw.Range(timedelta(microseconds=40)),
    "rows": gw.Rows(6),
    "from the first": gw.Range(),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_over_begins_empty(frame: str) -> None:
    """Frames are of rows that are kept, where a new column is null; or of the rows since."""
    rows = rows_of()

    def query_of(carried: list[str], **given: Any) -> Query:
        return (
            keyed()
            .over(FRAMES[frame])
            .arrival_order("seq")
            .with_outputs()
            .aggregate(carried, **given)
            .plan.query
        )

    query = Restarted(query_of(["seq"], n=gw.count(), sum=gw.sum("v")))
    run(query, rows[:CUT])
    given: dict[str, Any] = {"n": gw.count(), "sum": gw.sum("v")}
    given |= {"certain": gw.mean("sure"), "m": gw.max("sure")}
    if frame == "from the first":
        given["times"] = gw.dense_rank()
    assert query.start(query_of(["seq", "text"], **given), 3) == ["text", *[*given][2:]]
    results = run(query, rows[CUT:]) + query.micro_batch([], LONG_MAX)
    assert len(results) >= COUNT - CUT
    for result in results:
        row = rows[result["seq"]]
        before = [each for each in rows[: row["seq"] + 1] if each["k"] == row["k"]]
        if frame == "rows":
            before = before[-7:]
        if frame == "time":
            before = [each for each in before if each["ts"] >= row["ts"] - 40]
        values = [each["v"] for each in before if each["v"] is not None]
        assert (result["n"], result["sum"]) == (len(before), sum(values) if values else None)
        later = [each["sure"] for each in before if each["seq"] >= CUT]
        assert result["certain"] == (pytest.approx(sum(later) / len(later)) if later else None)
        assert result["m"] == max(later, default=None)
        assert result["text"] == (row["text"] if row["seq"] >= CUT else None)
        if "times" in given:  # the last row before the restart waited for the watermark
            assert result["times"] == sum(each["seq"] >= CUT - 1 for each in before)


def joined(kind: str, *right: str) -> Query:
    left = gw.stream(SCHEMA.empty_table().select(["k", "ts", "v", "seq"])).event_time(
        "ts", MONOTONOUS
    )
    fields = [
        ("k", pa.string()),
        ("at", pa.int64()),
        ("seq", pa.int64()),
        *((name, pa.int64()) for name in right),
    ]
    other = gw.stream(pa.schema(fields).empty_table()).event_time("at", MONOTONOUS).key_by("k")
    if kind == "versions":
        made = (
            left.key_by("k")
            .temporal_join(other)
            .arrival_order("seq")
            .with_outputs()
            .select(["v"], [*right])
        )
    else:
        made = (
            left.key_by("k")
            .interval_join(other)
            .between(timedelta(microseconds=-30), timedelta(0))
            .with_outputs()
            .select(["v"], [*right])
        )
    return made.plan.query


@pytest.mark.parametrize("kind", ["rows", "versions"])
def test_a_column_of_a_join_begins_as_null(kind: str) -> None:
    from gpu_windows.functions.two_inputs import SIDE, TIME

    query = Restarted(joined(kind, "r"))
    names = query.plan.input_columns
    left, right = (next(n for n in names if n.endswith(end)) for end in ("_v", "_r"))

    def row(time: int, *, is_left: bool, **values: int) -> dict[str, Any]:
        nothing = dict.fromkeys([*query.plan.input_columns, *values])
        return {**nothing, "k": "a", TIME: time, SIDE: is_left, **values}

    assert query.micro_batch([row(1, is_left=False, **{right: 10})], 2) == []
    added = query.start(joined(kind, "r", "s"), 3)
    (new,) = added
    found = query.micro_batch([row(5, is_left=True, **{left: 1})], 6)
    assert [(each[right], each[new]) for each in found] == [(10, None)]
    query.micro_batch([row(7, is_left=False, **{right: 11, new: 12})], 8)
    found = query.micro_batch([row(9, is_left=True, **{left: 2})], 10)
    assert (11, 12) in [(each[right], each[new]) for each in found]


# ---- what is refused


def test_what_keeps_other_things_of_rows_is_refused() -> None:
    """A list needs the rows of windows that have become partials."""
    made = KINDS["tumbling"]
    query = Restarted(windows(made, **OLD))
    with pytest.raises(StateMismatchError, match="strategy was slices, is buffer"):
        query.start(windows(made, **OLD, all=gw.collect_list("v")))


def test_an_order_of_arrival_that_changes_is_refused() -> None:
    """Nobody has named the columns of the order, so all that are used tell it: now another one."""

    def made(*names: str) -> Query:
        firsts = {f"first {name}": gw.first(name) for name in names}
        stream = keyed().window(gw.TumblingEventTimeWindows(50))
        return stream.with_outputs().aggregate(**firsts).plan.query

    query = Restarted(made("seq"))
    with pytest.raises(StateMismatchError, match="order of arrival was ts, seq, is ts, seq, v"):
        query.start(made("seq", "v"))


def test_the_reference_engine_begins_nothing_empty() -> None:
    def made(stream: gw.typing.KeyedStream) -> gw.typing.WindowedStream:
        return stream.window(gw.TumblingEventTimeWindows(50)).options(engine="reference")

    query = Restarted(windows(made, **OLD))
    with pytest.raises(StateMismatchError, match="if kernels make them"):
        query.start(windows(made, **OLD, top=gw.max("v")))


def test_a_column_that_is_gone_and_did_not_begin_later_is_damage() -> None:
    """Only what began at a later start may be missing: all else was written."""
    rows, made = rows_of(), KINDS["tumbling"]
    query = Restarted(windows(made, **OLD), 1)
    query.micro_batch(rows[:20], 0)
    wrong = Restarted(windows(made, **OLD, top=gw.max("v")), 1)
    wrong.files, wrong.newest = query.files, query.newest
    with pytest.raises(StateCorruptedError, match="the columns of the partials"):
        wrong.micro_batch([], LONG_MAX)


def test_state_has_the_new_shape_after_a_merge() -> None:
    """Runs of both shapes become one, whichever came first."""
    rows, made = rows_of(), KINDS["tumbling"]
    query = Restarted(windows(made, **OLD), 1)
    for row in rows[:20]:
        query.micro_batch([row], -1)
    old = StateLog(query.files, query.newest[0])
    assert len(old.runs("slices")) > 1
    query.start(windows(made, **OLD, **AGGREGATES), 1)
    for row in rows[20:40]:
        query.micro_batch([row], -1)
    log = StateLog(query.files, query.newest[0])
    runs = log.runs("slices")
    names = [{*log.block_index(run).schemas[0].names} for run in runs]
    assert len(runs) < 20
    assert all(each == names[-1] for each in names), "those of the first start were merged"
    results = query.micro_batch([], LONG_MAX)
    assert check(results, rows[:40], 20) >= 1


def test_nothing_begins_without_names() -> None:
    planned = Restarted(windows(KINDS["tumbling"], **OLD)).plan
    assert with_rows_since(planned, {}) is planned


def test_lists_of_rows_begin_with_nulls() -> None:
    """A column that was not kept is null in earlier rows, and the lists are as long as others."""
    rows = rows_of()

    def made(*names: str) -> Query:
        windowed = keyed().window(gw.SlidingEventTimeWindows(60, 20)).arrival_order("seq")
        return windowed.with_outputs().collect_lists(*names).plan.query

    query = Restarted(made("seq"))
    run(query, rows[:CUT])
    assert query.start(made("seq", "text"), 3) == ["text"]
    results = run(query, rows[CUT:]) + query.micro_batch([], LONG_MAX)
    assert any(None in result["text"] for result in results)
    for result in results:
        wanted = [rows[seq]["text"] if seq >= CUT else None for seq in result["seq"]]
        assert result["text"] == wanted
