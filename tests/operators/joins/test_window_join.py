"""Window joins and co-groups: every join type against nested loops, on every runner."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
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
from gpu_windows.rules import LONG_MAX
from tests.examples import examples
from tests.lanes import quick
from tests.operators.joins.rows import (
    ENGINES,
    HOW,
    ROWS,
    SIZE,
    STRICT,
    TUMBLING,
    Lengths,
    Row,
    instants,
    joined,
    keyed,
    table,
)
from tests.spark_glue.stream_runs import BEGIN, SECOND, files, run_to_the_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def nested_loops(
    left: list[Row], right: list[Row], how: str, most: int = LONG_MAX, *, null_safe: bool = False
) -> Counter[Any]:
    """Join what SQL would: null keys match nothing, or null; a pair's sum is at most ``most``."""

    def window(row: Row) -> int | None:
        return None if row[1] is None else row[1] // SIZE * SIZE

    def meets(one: Row, other: Row) -> bool:
        if one[0] != other[0] or window(one) != window(other):
            return False
        if one[0] is None and not null_safe:
            return False
        return one[2] + other[2] <= most

    left, right = ([row for row in side if row[1] is not None] for side in (left, right))
    found: list[Any] = []
    for row in left:
        partners = [other for other in right if meets(row, other)]
        place = (row[0], window(row))
        if how in ("semi", "anti"):
            found += [(*place, row[2])] if bool(partners) == (how == "semi") else []
            continue
        found += [(*place, row[2], other[2]) for other in partners]
        if not partners and how in ("left", "full"):
            found.append((*place, row[2], None))
    if how in ("right", "full"):
        for other in right:
            if not any(meets(row, other) for row in left):
                found.append((other[0], window(other), None, other[2]))
    return Counter(found)


def seen(result: pa.Table) -> Counter[Any]:
    at = result["window_start"].cast(pa.int64()).to_pylist()
    rows = result.drop_columns(["window_start", "window_end"]).to_pylist()
    return Counter((r.pop("k"), start, *r.values()) for r, start in zip(rows, at, strict=True))


@examples(60)
@given(
    left=ROWS, right=ROWS, how=st.sampled_from(HOW), pairs=st.sampled_from([1, 3, 1000]),
    null_safe=st.booleans(),
)  # fmt: skip
def test_pairs_are_those_of_nested_loops(
    left: list[Row], right: list[Row], how: str, pairs: int, null_safe: bool
) -> None:
    before, join_pairs.PAIRS = join_pairs.PAIRS, pairs
    try:
        for engine in ENGINES:
            outputs = joined(table(left), table(right), how, engine, null_safe=null_safe)
            wanted = nested_loops(left, right, how, null_safe=null_safe)
            assert seen(outputs.result()) == wanted
            nulls = sum(row[1] is None for row in (*left, *right))
            assert outputs.rejected().num_rows == nulls
            assert outputs.metrics()["null_timestamp"].to_pylist() == [nulls]
    finally:
        join_pairs.PAIRS = before


@examples(30)
@given(left=ROWS, right=ROWS, how=st.sampled_from(HOW))
def test_a_condition_is_part_of_the_match(left: list[Row], right: list[Row], how: str) -> None:
    where = pc.field("left_v") + pc.field("right_v") <= 8
    for engine in ENGINES:
        found = joined(table(left), table(right), how, engine, where=where).result()
        assert seen(found) == nested_loops(left, right, how, most=8)


def test_columns_have_the_names_that_were_asked_for() -> None:
    left, right = table([("a", 1, 5)]), table([("a", 2, 7)], k="key", v="w")
    windowed = keyed(left).join(keyed(right, key="key")).window(TUMBLING)
    found = windowed.select({"price": "v", "at": "ts"}, ["w"], prefixes=("l_", "r_"))
    bounds = ["window_start", "window_end"]
    assert found.column_names == ["k", *bounds, "price", "at", "r_w"]
    assert windowed.select(["v"], how="semi").column_names == ["k", *bounds, "left_v"]


ONE = table([("a", 1, 5)])


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda: keyed(ONE).join(ONE), errors.QueryError, "keyed one.* got Table"),
        (
            lambda: keyed(ONE).join(keyed(ONE, key="v")),
            errors.ColumnTypeError,
            "same type in both inputs.* it is string in the first one.*, got int64",
        ),
        (
            lambda: keyed(ONE).join(gw.stream(ONE).event_time("ts", STRICT).key_by("k", "v")),
            errors.QueryError,
            "as many columns, got k and k, v",
        ),
        (lambda: joined(ONE, ONE, "cross"), errors.InvalidOptionError, "how is one of inner"),
        (
            lambda: joined(ONE, ONE, "inner", where=pc.field("v") > 1),
            errors.QueryError,
            "true or false, over left_v, right_v",
        ),
        (lambda: joined(ONE, ONE, "inner", where="v > 1"), errors.QueryError, "got str"),
        (
            lambda: keyed(ONE).join(keyed(ONE)).window(TUMBLING).select({"x": "v"}, {"X": "v"}),
            errors.NameClashError,
            "'x'",
        ),
        (
            lambda: keyed(ONE).join(keyed(ONE)).window(TUMBLING).select({"k": "v"}),
            errors.NameClashError,
            "'k'",
        ),
        (
            lambda: (
                keyed(ONE)
                .co_group(keyed(ONE))
                .window(TUMBLING)
                .aggregate(left={"x": gw.first("v")})
            ),
            errors.InvalidFunctionError,
            "ignore_nulls=True",
        ),
    ],
)
def test_bad_input_is_refused(build: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        build()


# ---- co-groups


@examples(40)
@given(left=ROWS, right=ROWS)
def test_sides_are_aggregated_and_collected_apart(left: list[Row], right: list[Row]) -> None:
    groups: dict[Any, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((left, right)):
        for key, ts, value in rows:
            if ts is not None:
                groups[key, ts // SIZE * SIZE][side].append(value)
    both = keyed(table(left)).co_group(keyed(table(right))).window(TUMBLING)
    for engine in ENGINES:
        windowed = both.options(engine=engine, device="cpu")
        sums = windowed.aggregate(
            left={"n": gw.count(), "sum": gw.sum("v")}, right={"m": gw.count("v")}
        )
        assert seen(sums) == Counter(
            (*place, len(ours), sum(ours) if ours else None, len(its))
            for place, (ours, its) in groups.items()
        )
        lists = windowed.collect_lists(["v"], {"w": "v"})
        found = {
            (row["k"], start): (row["left_v"], row["w"])
            for row, start in zip(
                lists.to_pylist(), lists["window_start"].cast(pa.int64()).to_pylist(), strict=True
            )
        }
        assert found == dict(groups)


def test_names_of_aggregates_do_not_clash() -> None:
    left = pa.table(
        {"k": ["a"] * 3, "ts": [1, 2, 3], "x": [1, 2, 3], "y": [9, 1, 5], "z": [1, 2, 3]}
    )
    both = keyed(left).co_group(keyed(ONE)).window(TUMBLING)
    wanted = {"best": gw.arg_max("x", "y"), "best_by": gw.sum("z")}
    for aggregates in (wanted, dict(reversed(wanted.items()))):
        (row,) = both.aggregate(left=aggregates).to_pylist()
        assert (row["best"], row["best_by"]) == (1, 6)


def test_rows_that_are_given_back_say_whose_they_are() -> None:
    left, right = table([("a", None, 1)]), table([("a", None, 2), ("b", 1, 3)])
    both = keyed(left).co_group(keyed(right)).window(TUMBLING)
    rejected = both.with_outputs().aggregate(left={"n": gw.count()}).rejected().to_pylist()
    assert [row["is_left"] for row in rejected] == [True, False]


class Gaps(gw.functions.CoGroupFunction):
    """Rows for the difference of both sides' sums, as often as there are rows on the left."""

    def co_group(self, key: Any, context: Any, left: Any, right: Any) -> Iterator[Any]:
        values = left["v"].to_pylist() if isinstance(left, pa.Table) else left["v"]
        for value in values:
            yield {
                "key": key["k"],
                "gap": int(value) - len(right),
                "end": context.window.end,
            }


def test_functions_of_users_take_both_sides() -> None:
    left, right = table([("a", 1, 5), ("a", 2, 6), ("b", 3, 7)]), table([("a", 1, 5), ("c", 1, 1)])
    windowed = keyed(left).co_group(keyed(right)).window(TUMBLING)
    output = pa.schema([("key", pa.string()), ("gap", pa.int64()), ("end", pa.int64())])
    for rows in ("arrow", "pandas"):
        found = windowed.process(Gaps(), ["v"], ["v"], output=output, rows=rows)
        gaps = Counter(zip(found["key"].to_pylist(), found["gap"].to_pylist(), strict=True))
        assert gaps == Counter([("a", 4), ("a", 5), ("b", 7)])
        assert set(found["end"].to_pylist()) == {SIZE}
    counts = pa.schema([("n", pa.int64()), ("m", pa.int64())])
    found = windowed.process(Lengths(), ["v"], ["v"], output=counts)
    assert seen(found) == Counter([("a", 0, 2, 1), ("b", 0, 1, 0), ("c", 0, 0, 1)])
    wrong = pa.schema([("other", pa.int64())])
    with pytest.raises(errors.InvalidFunctionError, match=r"Gaps must return.* got {'key': "):
        windowed.process(Gaps(), ["v"], ["v"], output=wrong)


# ---- Spark


LEFT: list[Row] = [("a", 1, 1), ("a", 12, 2), ("b", 3, 3), (None, 4, 4), ("c", None, 5)]
RIGHT: list[Row] = [("a", 2, 6), ("a", 9, 7), ("b", 13, 8), (None, 5, 9)]


@pytest.mark.parametrize("how", quick(HOW, "full", "anti"))
def test_spark_gives_what_the_local_runner_gives(spark: SparkSession, how: str) -> None:
    frames = [spark.createDataFrame(instants(rows)) for rows in (LEFT, RIGHT)]
    left, right = frames
    outputs = joined(left, right, how)
    assert seen(outputs.result().toArrow()) == nested_loops(LEFT, RIGHT, how)
    rejected = outputs.rejected().toArrow().to_pylist()
    assert [(row["is_left"], row["rejection_reason"]) for row in rejected] == [
        (True, "null_timestamp")
    ]


def test_keys_and_columns_may_be_expressions(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    left, right = (spark.createDataFrame(instants(rows)) for rows in (LEFT, RIGHT))
    ours = gw.stream(left).event_time("ts", STRICT).key_by(F.upper("k").alias("key"))
    its = gw.stream(right).event_time("ts", STRICT).key_by(F.upper("k"))
    windowed = ours.co_group(its).window(gw.GlobalWindows.create_with_end_of_stream_trigger())
    found = windowed.aggregate(left={"most": gw.max(F.col("v") + 1)}, right={"n": gw.count()})
    assert {(r.key, r.most, r.n) for r in found.collect()} == {
        ("A", 3, 2), ("B", 4, 1), (None, 5, 1), ("C", 6, 0)
    }  # fmt: skip


def test_a_stream_is_not_joined_with_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame(instants(LEFT))
    stream = spark.readStream.schema(frame.schema).parquet(str(tmp_path))
    with pytest.raises(
        errors.QueryError, match="streams or both batch DataFrames, got a stream with a batch"
    ):
        joined(stream, frame, "inner")


@pytest.mark.thorough
def test_streams_give_pairs_and_late_rows_of_each_side(spark: SparkSession, tmp_path: Path) -> None:
    def seconds(*rows: tuple[str, int, int]) -> pa.Table:
        return instants([(key, BEGIN + at * SECOND, value) for key, at, value in rows])

    files(tmp_path / "a", [seconds(("a", 1, 1), ("b", 12, 2)), seconds(("a", 31, 3)), seconds()])
    files(
        tmp_path / "b",
        [seconds(("a", 3, 4)), seconds(("a", 32, 5)), seconds(("a", 2, 6), ("a", 33, 7))],
    )
    schema = spark.createDataFrame(instants(LEFT)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    left, right = (keyed(reader.parquet(str(tmp_path / side))) for side in "ab")
    windowed = left.join(right).window(gw.TumblingEventTimeWindows.of("10 seconds"))
    run_to_the_end(windowed.with_outputs().select(["v", "ts"], ["v"], how="full"), tmp_path)
    found = gw.read_output(spark, tmp_path / "out")
    assert Counter((r.k, r.left_v, r.right_v) for r in found.collect()) == Counter(
        [("a", 1, 4), ("b", 2, None)]
    )
    late = gw.read_output(spark, tmp_path / "out", "late").collect()
    assert [(r.is_left, r.k, r.right_v, r.left_v) for r in late] == [(False, "a", 6, None)]
