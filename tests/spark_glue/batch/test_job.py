"""Spark batch gives what the local runner gives, on every path that the planner has."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.planning.plan import PartialsBy
from tests.lanes import quick
from tests.planning.queries import SCHEMA, counters_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WATERMARKS = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
SECOND = 1_000_000

ASSIGNERS = {
    "tumbling": gw.TumblingEventTimeWindows.of("10 s", "3 s"),
    "sliding": gw.SlidingEventTimeWindows.of("10 s", "3 s"),
    "gaps": gw.SlidingEventTimeWindows.of("3 s", "7 s", "500 ms"),
    "cumulative": gw.CumulativeEventTimeWindows.of("20 s", "5 s"),
}
#: What Spark's own aggregation can make partials of.
FOLDED: dict[str, gw.typing.Aggregate] = {
    "rows": gw.count(),
    "counted": gw.count("text"),
    "sum_i": gw.sum("i"),
    "sum_small": gw.sum("small"),
    "sum_f": gw.sum("f"),
    "max_f": gw.max("f"),
    "min_small": gw.min("small"),
    "day": gw.max("day"),
    "ts": gw.max("ts"),
    "every": gw.bool_and("b"),
    "mean_i": gw.mean("i"),
    "rows_if": gw.count().filter("b"),
    "sum_i_if": gw.sum("i").filter("b"),
    "max_f_if": gw.max("f").filter("b"),
}
PICKED: dict[str, gw.typing.Aggregate] = {
    "dev": gw.stddev("f"),
    "var_i": gw.variance("i", ddof=0),
    "dev_if": gw.stddev("f").filter("b"),
    "first": gw.first("text"),
    "last": gw.last("i", ignore_nulls=True),
    "at_max": gw.arg_max("text", "f"),
    "sum_d": gw.sum("d"),
    "mean_d": gw.mean("d"),
    "first_if": gw.first("text").filter("b"),
    "sum_d_if": gw.sum("d").filter("b"),
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    import random

    rng = random.Random(5)
    rows = [
        {
            "key": rng.choice([None, "a", "b", "c"]),
            "part": rng.choice([None, 1, 2]),
            "ts": None if rng.random() < 0.05 else rng.randint(-60 * SECOND, 60 * SECOND),
            "i": rng.choice([None, rng.randint(-(2**55), 2**55)]),
            "small": rng.randint(-9, 9),
            "f": rng.choice([None, rng.randint(-99, 99) / 4]),
            "d": rng.choice([None, Decimal(rng.randint(-(10**8), 10**8)) / 1000]),
            "b": rng.choice([None, True, True, False]),
            "day": None,
            "text": rng.choice([None, "x", "y"]),
        }
        for _ in range(600)
    ]
    made = pa.Table.from_pylist(rows, schema=SCHEMA)
    made = made.append_column("seq", pa.array(range(600), pa.int64()))
    at = made.schema.get_field_index("ts")
    return made.set_column(at, "ts", made.column("ts").cast(pa.timestamp("us", "UTC")))


@pytest.fixture(scope="module")
def frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    return spark.createDataFrame(table).repartition(3)


def windowed(
    source: Any, assigner: gw.functions.WindowAssigner, **options: Any
) -> gw.typing.WindowedStream:
    keyed = gw.stream(source).event_time("ts", WATERMARKS).key_by("key", "part")
    return keyed.window(assigner).arrival_order("seq").options(device="cpu", **options)


def arrow(frame: DataFrame) -> pa.Table:
    return frame.toArrow()


@pytest.mark.smoke
@pytest.mark.parametrize("partials", ["kernels", "spark"])
@pytest.mark.parametrize("name", quick(ASSIGNERS, "sliding"))
def test_folded_aggregates(frame: DataFrame, table: pa.Table, name: str, partials: str) -> None:
    outputs = windowed(frame, ASSIGNERS[name], partials=partials).with_outputs().aggregate(**FOLDED)
    assert outputs.plan.partials_by is PartialsBy(partials)
    local = windowed(table, ASSIGNERS[name]).with_outputs().aggregate(**FOLDED)
    result = outputs.result()
    assert rows_of(arrow(result)) == rows_of(local.result())
    assert counters_of(outputs.metrics()) == counters_of(local.metrics())
    bounds = {f.name: (f.dataType.simpleString(), f.nullable) for f in result.schema}
    assert bounds["window_start"] == bounds["window_end"] == ("timestamp", False)


@pytest.mark.smoke
def test_results_that_no_spark_aggregate_makes(frame: DataFrame, table: pa.Table) -> None:
    outputs = windowed(frame, ASSIGNERS["sliding"]).with_outputs().aggregate(**PICKED)
    assert outputs.plan.partials_by is PartialsBy.KERNELS
    local = windowed(table, ASSIGNERS["sliding"]).aggregate(**PICKED)
    assert rows_of(arrow(outputs.result())) == rows_of(local)


@pytest.mark.smoke
def test_row_at_a_time(frame: DataFrame, table: pa.Table) -> None:
    def query(source: Any) -> Any:
        made = windowed(source, ASSIGNERS["sliding"]).trigger(gw.CountTrigger.of(3))
        return made.collect_lists("i", "seq")

    assert rows_of(arrow(query(frame))) == rows_of(query(table))


def test_reduce_is_user_code(frame: DataFrame, table: pa.Table) -> None:
    def query(source: Any) -> Any:
        def later(a: Any, b: Any) -> Any:
            return b if b["seq"] > a["seq"] else a

        return windowed(source, ASSIGNERS["tumbling"]).reduce(later, ["seq", "text"])

    assert rows_of(arrow(query(frame))) == rows_of(query(table))


@pytest.mark.parametrize("partials", ["kernels", "spark"])
@pytest.mark.parametrize("shards", quick([1, 3, None], 3))
def test_shards_and_tasks_do_not_matter(
    frame: DataFrame, table: pa.Table, shards: int | None, partials: str
) -> None:
    local = windowed(table, ASSIGNERS["sliding"]).aggregate(**FOLDED)
    for tasks in (1, 5):
        source = frame.repartition(tasks)
        made = windowed(source, ASSIGNERS["sliding"], partials=partials, shards=shards)
        assert rows_of(arrow(made.aggregate(**FOLDED))) == rows_of(local)


def test_rejected_rows_keep_their_columns(frame: DataFrame, table: pa.Table) -> None:
    rejected = (
        windowed(frame, ASSIGNERS["tumbling"]).with_outputs().aggregate(n=gw.count()).rejected()
    )
    assert rejected.columns == [*table.schema.names, "rejection_reason"]
    assert rejected.count() == table.column("ts").null_count
    assert {row.rejection_reason for row in rejected.collect()} == {"null_timestamp"}


@pytest.mark.smoke
def test_counters_through_observe(frame: DataFrame) -> None:
    from pyspark.sql import Observation

    for name in ("tumbling", "sliding"):
        observation = Observation()
        outputs: Any = windowed(frame, ASSIGNERS[name]).with_outputs().aggregate(n=gw.count())
        outputs.result(observation).write.format("noop").mode("overwrite").save()
        assert observation.get["rows"] == 600
        assert observation.get["null_timestamp"] > 0


def test_expressions_are_columns_too(frame: DataFrame) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    keyed = gw.stream(frame).event_time(F.col("ts") + F.expr("interval 1 hour"), WATERMARKS)
    result = (
        keyed.key_by(F.upper("key").alias("upper"))
        .window(ASSIGNERS["tumbling"])
        .aggregate(doubled=gw.sum(F.col("small") * 2), plain=gw.sum("small"))
    )
    assert result.columns == ["upper", "window_start", "window_end", "doubled", "plain"]
    for row in result.collect():
        assert row.doubled == 2 * row.plain
        assert row.upper in {None, "A", "B", "C"}


def test_expressions_never_hide_columns(frame: DataFrame) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    keyed = gw.stream(frame).event_time("ts", WATERMARKS).key_by(F.upper("key").alias("key"))
    outputs = (
        keyed.window(ASSIGNERS["tumbling"])
        .with_outputs()
        .aggregate(plain=gw.max(F.length("key")), other=gw.count(F.col("key")))
    )
    assert {row.key for row in outputs.result().collect()} == {None, "A", "B", "C"}
    assert {row.key for row in outputs.rejected().collect()} <= {None, "a", "b", "c"}
    assert outputs.rejected().columns[: len(frame.columns)] == frame.columns
    assert "key       key" in outputs.explain()
    with pytest.raises(errors.NameClashError):
        keyed.window(ASSIGNERS["tumbling"]).aggregate(Key=gw.count())
    plain = gw.stream(frame).event_time("ts", WATERMARKS).key_by(F.col("key"))
    result = plain.window(ASSIGNERS["tumbling"]).aggregate(n=gw.count())
    assert {row.key for row in result.collect()} == {None, "a", "b", "c"}


def test_the_time_column_as_key_and_argument(frame: DataFrame) -> None:
    schemas = set()
    for name in ("tumbling", "sliding"):
        for partials in ("kernels", "spark"):
            keyed = gw.stream(frame).event_time("ts", WATERMARKS).key_by("ts")
            windowed = keyed.window(ASSIGNERS[name]).options(partials=partials)
            result = windowed.aggregate(latest=gw.max("ts"))
            schemas.add(result.schema.simpleString())
            assert all(row.ts == row.latest for row in result.collect())
    assert len(schemas) == 1


def test_large_strings(spark: SparkSession, frame: DataFrame, table: pa.Table) -> None:
    aggregates = {"first": gw.first("text"), "n": gw.count("text")}
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        for partials in ("kernels", "auto"):
            made = windowed(frame, ASSIGNERS["sliding"], partials=partials)
            found = rows_of(arrow(made.aggregate(**aggregates)))
            assert found == rows_of(windowed(table, ASSIGNERS["sliding"]).aggregate(**aggregates))
    finally:
        spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "false")


def test_order_by_needs_an_order(frame: DataFrame) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    made = windowed(frame, ASSIGNERS["tumbling"]).arrival_order(F.struct("seq").alias("order"))
    with pytest.raises(errors.ColumnTypeError, match="arrival_order takes"):
        made.aggregate(first=gw.first("text"))


def test_the_session_time_zone_does_not_matter(
    table: pa.Table, frame: DataFrame, time_zone: Any
) -> None:
    local = windowed(table, ASSIGNERS["sliding"]).aggregate(n=gw.count(), ts=gw.max("ts"))
    with time_zone("America/New_York"):
        for partials in ("kernels", "spark"):
            made = windowed(frame, ASSIGNERS["sliding"], partials=partials)
            result = arrow(made.aggregate(n=gw.count(), ts=gw.max("ts")))
            assert rows_of(result.cast(local.schema)) == rows_of(local)


def test_other_timestamps_and_odd_names(
    spark: SparkSession, table: pa.Table, time_zone: Any
) -> None:
    odd = ["a-b", "c d", "e f", "x.y", "n`"]
    extra = ["day", "seq"]
    columns = [table.column(c) for c in ("key", "ts", "ts", "day", "seq")]
    columns += [table.column("day"), table.column("seq")]
    renamed = pa.table(columns, names=[*odd, *extra])
    frame = spark.createDataFrame(renamed)

    def query(source: Any, **options: Any) -> gw.typing.Outputs:
        keyed = gw.stream(source).event_time("c d", WATERMARKS).key_by("a-b", "day")
        made = keyed.window(ASSIGNERS["sliding"]).arrival_order("seq").options(**options)
        return made.with_outputs().aggregate(
            first=gw.first("e f"), ts=gw.last("c d"), top=gw.max("e f")
        )

    wanted = query(renamed)
    with time_zone("America/New_York"):
        for tasks in (1, 3):
            made = query(frame.repartition(tasks), partials="kernels")
            found = arrow(made.result()).cast(wanted.result().schema)
            assert rows_of(found) == rows_of(wanted.result())
        assert made.rejected().columns == [*odd, *extra, "rejection_reason"]
        assert made.rejected().count() == wanted.rejected().num_rows
        assert made.late().count() == 0
    for name in ("x.y", "n`"):
        with pytest.raises(errors.ColumnNameError, match="rename them with alias"):
            gw.stream(frame).event_time("c d", WATERMARKS).key_by(name)


def test_bad_input_is_refused_on_the_driver(frame: DataFrame) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    days = frame.withColumn("ts", F.col("ts").cast("date"))
    with pytest.raises(errors.ColumnTypeError, match=r"must be TIMESTAMP: .*got date"):
        windowed(days, ASSIGNERS["tumbling"]).aggregate(n=gw.count())
    with pytest.raises(errors.ColumnTypeError, match="must be TIMESTAMP"):
        gw.stream(frame).event_time("text", WATERMARKS).key_by("key").window(
            ASSIGNERS["tumbling"]
        ).aggregate(n=gw.count())
    with pytest.raises(errors.ColumnNotFoundError, match="'nope'"):
        windowed(frame, ASSIGNERS["tumbling"]).aggregate(n=gw.sum("nope"))
    expressions = [
        (F.col("nope") * 2, errors.ColumnNotFoundError, r"it has .*text.*\(column 'nope'\)"),
        (F.sum("ts"), errors.QueryError, r"for F\.sum\('v'\) write gw\.sum\('v'\), got .*sum\(ts"),
        (F.array("text") + 1, errors.QueryError, r"that Spark computes: .*TYPE.*, got Column"),
    ]
    for expression, kind, text in expressions:
        with pytest.raises(kind, match=text):
            windowed(frame, ASSIGNERS["tumbling"]).aggregate(n=gw.max(expression))
    for other in (frame.groupBy("key"), frame.sparkSession, frame.key):
        with pytest.raises(errors.QueryError, match=r"stream takes .*, got (Gr|Sp|Column)"):
            gw.stream(other)
    with pytest.raises(errors.UnsupportedAggregateError, match="sum takes"):
        windowed(frame, ASSIGNERS["tumbling"]).aggregate(n=gw.sum("text"))
    with pytest.raises(errors.UnsupportedQueryError, match="partials='spark' is not possible"):
        windowed(frame, ASSIGNERS["tumbling"], partials="spark").aggregate(n=gw.first("text"))
    with pytest.raises(errors.UnsupportedQueryError, match="variance loses the digits"):
        windowed(frame, ASSIGNERS["tumbling"], partials="spark").aggregate(n=gw.stddev("f"))
    outputs = windowed(frame, ASSIGNERS["tumbling"]).with_outputs().aggregate(n=gw.count())
    with pytest.raises(errors.QueryError, match=r"it with spark\.readStream, got a batch Data"):
        gw.write_stream(outputs, "out", "checkpoint")


def test_empty_dataframe(frame: DataFrame) -> None:
    for partials in ("kernels", "spark"):
        for name in ("tumbling", "sliding"):
            made = windowed(frame.limit(0), ASSIGNERS[name], partials=partials)
            outputs = made.with_outputs().aggregate(**FOLDED)
            assert outputs.result().count() == 0
            (counters,) = outputs.metrics().collect()
            assert counters.rows == 0


@pytest.mark.thorough
def test_bigint_overflow_is_an_error_everywhere(spark: SparkSession) -> None:
    now = datetime(2024, 1, 1, tzinfo=UTC)
    frame = spark.createDataFrame([("a", now, 2**62)] * 2, "key string, ts timestamp, v bigint")
    for partials in ("kernels", "spark"):
        for assigner in (ASSIGNERS["tumbling"], gw.SlidingEventTimeWindows.of("20 s", "10 s")):
            keyed = gw.stream(frame).event_time("ts", WATERMARKS).key_by("key").window(assigner)
            result = keyed.options(partials=partials).aggregate(s=gw.sum("v"))
            with pytest.raises(Exception, match="must fit 64 bits"):
                result.collect()


def test_order_without_order_by_is_deterministic_and_warned_about(frame: DataFrame) -> None:
    keyed = gw.stream(frame).event_time("ts", WATERMARKS).key_by("key")
    made = keyed.window(ASSIGNERS["tumbling"])
    outputs = made.with_outputs().aggregate(first=gw.first("text"))
    assert "name the columns of the true order with arrival_order" in outputs.explain()
    again = gw.stream(frame.repartition(7)).event_time("ts", WATERMARKS).key_by("key")
    second = again.window(ASSIGNERS["tumbling"]).aggregate(first=gw.first("text"))
    assert rows_of(arrow(outputs.result())) == rows_of(arrow(second))
    assert (
        "arrival_order"
        not in made.arrival_order("seq").with_outputs().aggregate(first=gw.first("text")).explain()
    )
