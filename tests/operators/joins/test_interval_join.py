"""Interval joins: against nested loops, the kernels against Flink's algorithm, on every runner."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.operators.joins import pairs as join_pairs
from gpu_windows.rules import LONG_MAX, LONG_MIN
from tests.examples import examples
from tests.lanes import quick
from tests.operators.joins.interval_joins import BOUNDS, NEAREST, in_time, seen
from tests.operators.joins.rows import (
    ENGINES,
    HOW,
    INSTANT,
    ROWS,
    STRICT,
    Row,
    instants,
    keyed,
    table,
)
from tests.reference.run import run_by
from tests.spark_glue.stream_runs import BEGIN, SECOND, files, run_to_the_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def nested_loops(
    left: list[Row],
    right: list[Row],
    bounds: tuple[int, int],
    how: str,
    most: int = LONG_MAX,
    *,
    null_safe: bool = False,
) -> Counter[Any]:
    def meets(one: Row, other: Row) -> bool:
        near = bounds[0] <= (other[1] or 0) - (one[1] or 0) <= bounds[1]
        same = one[0] == other[0] and (null_safe or one[0] is not None)
        return same and near and one[2] + other[2] <= most

    left, right = ([row for row in side if row[1] is not None] for side in (left, right))
    found: list[Any] = []
    for row in left:
        partners = [other for other in right if meets(row, other)]
        if how in ("semi", "anti"):
            found += [(row[0], row[2])] if bool(partners) == (how == "semi") else []
            continue
        found += [(row[0], row[2], other[2]) for other in partners]
        if not partners and how in ("left", "full"):
            found.append((row[0], row[2], None))
    if how in ("right", "full"):
        for other in right:
            if not any(meets(row, other) for row in left):
                found.append((other[0], None, other[2]))
    return Counter(found)


@examples(100)
@given(
    left=ROWS, right=ROWS, bounds=BOUNDS, how=st.sampled_from(HOW),
    exclusive=st.tuples(st.booleans(), st.booleans()), pairs=st.sampled_from([1, 3, 1000]),
    null_safe=st.booleans(),
)  # fmt: skip
def test_pairs_are_those_of_nested_loops(
    left: list[Row], right: list[Row], bounds: tuple[int, int], how: str,
    exclusive: tuple[bool, bool], pairs: int, null_safe: bool,
) -> None:  # fmt: skip
    within = bounds[0] + exclusive[0], bounds[1] - exclusive[1]
    before, join_pairs.PAIRS = join_pairs.PAIRS, pairs
    try:
        for engine in ENGINES:
            outputs = in_time(
                table(left), table(right), bounds, how, exclusive, null_safe=null_safe
            )
            wanted = nested_loops(left, right, within, how, null_safe=null_safe)
            with run_by(engine):
                assert seen(outputs.result()) == wanted
            nulls = sum(row[1] is None for row in (*left, *right))
            assert outputs.rejected().num_rows == nulls
            assert outputs.metrics()["rows"].to_pylist() == [len(left) + len(right)]
    finally:
        join_pairs.PAIRS = before


@examples(40)
@given(left=ROWS, right=ROWS, bounds=BOUNDS, how=st.sampled_from(HOW))
def test_without_a_key_all_rows_are_near_or_not(
    left: list[Row], right: list[Row], bounds: tuple[int, int], how: Any
) -> None:
    both = [gw.stream(table(side)).event_time("ts", STRICT) for side in (left, right)]
    ticks = (timedelta(microseconds=bound) for bound in bounds)
    made = both[0].interval_join_all(both[1]).between(*ticks).select(["v"], ["v"], how=how)
    wanted = nested_loops([("", *row[1:]) for row in left], [("", *row[1:]) for row in right],
                          bounds, how)  # fmt: skip
    found = (tuple(row.values()) for row in made.to_pylist())
    assert Counter(("", *row) for row in found) == wanted


class Keys(gw.functions.ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, context: Any) -> list[dict[str, Any]]:
        return [{"key": repr(context.key), "sum": left["v"] + right["v"]}]


def test_without_a_key_functions_see_an_empty_one() -> None:
    both = [gw.stream(table([("a", 1, at)])).event_time("ts", STRICT) for at in (2, 3)]
    joined = both[0].interval_join_all(both[1]).between("0 s", "1 s")
    output = pa.schema([("key", pa.string()), ("sum", pa.int64())])
    found = joined.process(Keys(), ["v"], ["v"], output=output)
    assert found.to_pylist() == [{"key": "{}", "sum": 5}]


def test_with_a_key_or_without_one() -> None:
    keyed_one = keyed(table([]))
    without = gw.stream(table([])).event_time("ts", STRICT)
    with pytest.raises(errors.QueryError, match="leave out key_by"):
        without.interval_join_all(keyed_one)  # type: ignore[arg-type]
    with pytest.raises(errors.QueryError, match="keyed one"):
        keyed_one.interval_join(without)  # type: ignore[arg-type]


@examples(40)
@given(left=ROWS, right=ROWS, bounds=BOUNDS, how=st.sampled_from(HOW))
def test_a_condition_is_part_of_the_match(
    left: list[Row], right: list[Row], bounds: tuple[int, int], how: str
) -> None:
    where = pc.field("left_v") + pc.field("right_v") <= 8
    for engine in ENGINES:
        with run_by(engine):
            found = in_time(table(left), table(right), bounds, how, where=where).result()
        assert seen(found) == nested_loops(left, right, bounds, how, most=8)


@examples(60)
@given(
    left=ROWS, right=ROWS, bounds=BOUNDS, direction=st.sampled_from(NEAREST),
    how=st.sampled_from(["inner", "left"]),
)  # fmt: skip
def test_the_nearest_row_is_found(
    left: list[Row], right: list[Row], bounds: tuple[int, int], direction: str, how: str
) -> None:
    wanted: Counter[Any] = Counter()
    ours, its = ([(k, t, v) for k, t, v in side if t is not None] for side in (left, right))
    for key, ts, value in ours:
        gaps = [
            (abs(other[1] - ts), other[1] - ts)
            for other in its
            if key is not None
            and key == other[0]
            and bounds[0] <= other[1] - ts <= bounds[1]
            and (direction != "before" or other[1] <= ts)
            and (direction != "after" or other[1] >= ts)
        ]
        if gaps or how == "left":
            wanted[key, value, min(gaps)[1] if gaps else None] += 1
    for engine in ENGINES:
        between = keyed(table(left)).interval_join(keyed(table(right))).between
        nearest: Any = between(*(timedelta(microseconds=b) for b in bounds)).nearest
        pairs = nearest(direction)
        with run_by(engine):
            found = pairs.options(device="cpu").select(["v", "ts"], ["ts"], how=how)
        assert wanted == Counter(
            (row["k"], row["left_v"], _gap(row))
            for row in found.to_pylist()
        )  # fmt: skip


def _gap(row: dict[str, Any]) -> int | None:
    return None if row["right_ts"] is None else row["right_ts"] - row["left_ts"]


# ---- the API


ONE = table([("a", 1, 5)])


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (
            lambda: keyed(ONE).interval_join(keyed(ONE)).between("5 seconds", "-5 seconds"),
            errors.InvalidDurationError,
            "must not be greater than the upper one, got 5 s > -5 s",
        ),
        (
            lambda: keyed(ONE).interval_join(keyed(ONE)).between("0 s", "99999999999999 weeks"),
            errors.InvalidDurationError,
            "fit 64 bits",
        ),
        (
            lambda: keyed(ONE).interval_join(keyed(ONE, key="v")),
            errors.ColumnTypeError,
            "same type",
        ),
        (
            lambda: in_time(ONE, ONE, (0, 1), "full", nearest="before"),
            errors.QueryError,
            "inner and left joins without a condition",
        ),
        (lambda: in_time(ONE, ONE, (0, 1), nearest="next"), errors.InvalidOptionError, "before,"),
        (
            lambda: in_time(ONE, ONE, (0, 1), nearest="before", late=True),
            errors.QueryError,
            "for rows in time",
        ),
        (lambda: in_time(ONE, ONE, (0, 1), "cross"), errors.InvalidOptionError, "how is one of"),
        (
            lambda: keyed(ONE).interval_join(keyed(ONE)).between("0 s", "1 s").select(),
            errors.QueryError,
            "choose a column of a side",
        ),
        (
            lambda: gw.trace_firings(in_time(ONE, ONE, (0, 1)), ONE),
            errors.UnsupportedQueryError,
            "has none",
        ),
    ],
)
def test_bad_input_is_refused(build: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        build()


def test_bounds_must_fit_int64() -> None:
    left = table([("a", LONG_MIN + 5, 1), ("a", LONG_MIN + 6, 2), ("a", LONG_MAX - 5, 3)])
    right = table([("a", LONG_MAX - 8, 4), ("a", LONG_MAX - 4, 5)])
    for engine in ENGINES:
        outputs = in_time(left, right, (-5, 5))
        with run_by(engine):
            assert seen(outputs.result()) == Counter([("a", 3, 4)])
        rejected = outputs.rejected().to_pylist()
        assert [(row["left_v"], row["right_v"]) for row in rejected] == [(1, None), (None, 5)]
        assert {row["rejection_reason"] for row in rejected} == {"out_of_range_timestamp"}


def test_nothing_runs_it_row_at_a_time() -> None:
    pairs = keyed(ONE).interval_join(keyed(ONE)).between("0 s", "1 s")
    with pytest.raises(errors.UnsupportedQueryError, match="engine='reference' is not possible"):
        pairs.options(engine="reference").select(["v"])


def test_queries_with_a_condition_compare() -> None:
    first, second, other = (
        in_time(ONE, ONE, (0, 1), where=pc.field("left_v") > least).plan.query
        for least in (1, 1, 2)
    )
    assert first == second != other
    assert hash(first) == hash(second)


def test_a_bound_is_exclusive_once() -> None:
    pairs = keyed(ONE).interval_join(keyed(ONE)).between("-1 seconds", "1 seconds")
    once = pairs.lower_bound_exclusive().upper_bound_exclusive()
    assert once.lower_bound_exclusive().upper_bound_exclusive() == once


def test_bounds_that_leave_no_time_are_refused() -> None:
    pairs = keyed(ONE).interval_join(keyed(ONE)).between("-60000000 days", "60000000 days")
    with pytest.raises(errors.InvalidDurationError, match="leave times"):
        pairs.nearest().select(["v"])


def test_explain_says_what_is_joined() -> None:
    text = in_time(ONE, ONE, (-5, 10), "left", where=pc.field("left_v") > 1).explain()
    assert "left join, right rows between -5 us and 10 us from left ones where (left_v > 1)" in text
    assert "strategy  interval join" in text
    assert "from left ones, late ones too" in in_time(ONE, ONE, (-5, 10), late=True).explain()


# ---- Spark

LEFT: list[Row] = [("a", 1, 1), ("a", 12, 2), ("b", 3, 3), (None, 4, 4), ("c", None, 5)]
RIGHT: list[Row] = [("a", 2, 6), ("a", 9, 7), ("b", 13, 8), (None, 5, 9)]


@pytest.mark.parametrize("how", quick(HOW, "full", "semi"))
def test_spark_gives_what_the_local_runner_gives(spark: SparkSession, how: str) -> None:
    left, right = (spark.createDataFrame(instants(rows)) for rows in (LEFT, RIGHT))
    outputs = in_time(left, right, (-4, 4), how)
    assert seen(outputs.result().toArrow()) == nested_loops(LEFT, RIGHT, (-4, 4), how)
    rejected = outputs.rejected().toArrow().to_pylist()
    assert [(row["is_left"], row["rejection_reason"]) for row in rejected] == [
        (True, "null_timestamp")
    ]
    assert outputs.metrics().first()["rows"] == len(LEFT) + len(RIGHT)


def test_windows_may_be_joined_as_rows(spark: SparkSession) -> None:
    """An interval join has no windows of its own: the names of their bounds are free."""
    ts = pa.array([1, 9], INSTANT)
    rows = pa.table({"window_end": ["a", "b"], "ts": ts, "window_start": [5, 6]})

    def pairs(rows: Any) -> gw.typing.Outputs:
        ours = gw.stream(rows).event_time("ts", STRICT).key_by("window_end")
        between = ours.interval_join(ours).between("0 s", "0 s")
        return between.with_outputs().select({"window_start": "window_start"}, {"its": "ts"})

    wanted = pa.table({"window_end": ["a", "b"], "window_start": [5, 6], "its": ts})
    assert pairs(rows).result().equals(wanted)
    found = pairs(spark.createDataFrame(rows)).result().toArrow().sort_by("window_end")
    assert found.select(wanted.column_names).to_pylist() == wanted.to_pylist()


def test_streams_give_pairs_and_late_rows_of_each_side(spark: SparkSession, tmp_path: Path) -> None:
    def seconds(*rows: tuple[str, int, int]) -> pa.Table:
        return instants([(key, BEGIN + at * SECOND, value) for key, at, value in rows])

    files(tmp_path / "a", [seconds(("a", 1, 1), ("b", 12, 2)), seconds(("a", 31, 3)), seconds()])
    files(
        tmp_path / "b",
        [seconds(("a", 3, 4)), seconds(("a", 32, 5)), seconds(("a", 2, 6), ("a", 34, 7))],
    )
    schema = spark.createDataFrame(instants(LEFT)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    left, right = (keyed(reader.parquet(str(tmp_path / side))) for side in "ab")
    pairs = left.interval_join(right).between("0 seconds", "2 seconds")
    outputs = pairs.with_outputs().select(["v", "ts"], ["v"], how="full")
    run_to_the_end(outputs, tmp_path)
    found = gw.read_output(spark, tmp_path / "out")
    assert Counter((r.k, r.left_v, r.right_v) for r in found.collect()) == Counter(
        [("a", 1, 4), ("a", 3, 5), ("b", 2, None)]
    )
    late = gw.read_output(spark, tmp_path / "out", "late").collect()
    assert [(r.is_left, r.k, r.right_v, r.left_v) for r in late] == [(False, "a", 6, None)]


def test_streams_need_watermarks(spark: SparkSession, tmp_path: Path) -> None:
    schema = spark.createDataFrame(instants(LEFT)).schema
    stream = spark.readStream.schema(schema).parquet(str(tmp_path))
    still = gw.stream(stream).processing_time().key_by("k")
    with pytest.raises(errors.UnsupportedQueryError, match="store all rows for ever"):
        still.interval_join(still).between("0 s", "1 s").with_outputs().select(["v"])


def test_upsert_needs_windows(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame(instants(LEFT))
    stream = spark.readStream.schema(frame.schema).parquet(str(tmp_path))
    sink = gw.upsert(lambda *_: None)
    with pytest.raises(errors.UnsupportedQueryError, match="have no windows"):
        gw.write_stream(in_time(stream, stream, (0, 1)), sink, str(tmp_path / "checkpoint"))
