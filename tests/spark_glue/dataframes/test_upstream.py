"""What may stand before `gw.stream`: Spark's watermarks, and its steps that keep state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import gpu_windows as gw
from gpu_windows.errors import UnsupportedQueryError
from gpu_windows.spark_glue.dataframes.upstream import Upstream
from tests.lanes import quick
from tests.sinks.dying import Dies, fails
from tests.sinks.dying import run as dying_run
from tests.spark_glue.stream_runs import WATERMARKS, files, run_to_the_end, seconds, streamed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Change = Callable[["DataFrame"], "DataFrame"]
Rows = list[tuple[str, int, int]]
#: A micro-batch each; the second 3 is late, those of 1,000 close all windows.
BATCHES: list[Rows] = [
    [("a", 1, 1), ("a", 1, 1), ("b", 2, 2)],
    [("a", 40, 3), ("b", 2, 2)],
    [("a", 36, 4), ("a", 41, 5), ("a", 40, 3)],
    [("a", 3, 6), ("b", 42, 7)],
    [("z", 1000, 8)],
    [("z", 1001, 9)],
]


def windows_of(rows: DataFrame, watermarks: gw.WatermarkStrategy = WATERMARKS) -> gw.typing.Outputs:
    keyed = gw.stream(rows).event_time("ts", watermarks).key_by("k")
    windows = keyed.window(gw.TumblingEventTimeWindows.of("10 seconds")).options(shards=2)
    return windows.with_outputs().aggregate(n=gw.count(), total=gw.sum("v"))


def run(spark: SparkSession, folder: Path, change: Change, starts: int) -> list[Any]:
    """Run to the end of the files, in so many starts; return what is written."""
    for count in range(len(BATCHES) - starts + 1, len(BATCHES) + 1):
        files(folder / "in", [seconds(rows) for rows in BATCHES[:count]])
        rows = change(streamed(spark, folder / "in", seconds(BATCHES[0])))
        run_to_the_end(windows_of(rows), folder)
    return written(spark, folder)


def written(spark: SparkSession, folder: Path) -> list[Any]:
    """Return the results and the late rows that a query has written."""
    results = gw.read_output(spark, folder / "out").select("k", "n", "total")
    late = gw.read_output(spark, folder / "out", "late").select("k", "v", "rejection_reason")
    return [sorted(map(tuple, rows.collect())) for rows in (results, late)]


def marked(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("ts", "5 seconds")


#: What is written of all rows, and of distinct ones.
ALL = [("a", 1, 4), ("a", 2, 2), ("a", 3, 11), ("b", 1, 7), ("b", 2, 4)]
DISTINCT = [("a", 1, 1), ("a", 1, 4), ("a", 2, 8), ("b", 1, 2), ("b", 1, 7)]
LATE = [("a", 6, "late")]
ADOPTED: dict[str, tuple[Change, list[Any]]] = {
    "withWatermark": (marked, [ALL, LATE]),
    "dropDuplicates": (lambda rows: marked(rows).dropDuplicates(["k", "ts", "v"]), [DISTINCT, []]),
    "within": (lambda rows: marked(rows).dropDuplicatesWithinWatermark(["v"]), [DISTINCT, []]),
    "no watermark": (lambda rows: rows.dropDuplicates(["v"]), [DISTINCT, LATE]),
}


@pytest.mark.parametrize(
    "name", quick(ADOPTED, nightly=["no watermark", "dropDuplicates", "within"])
)
def test_rows_are_those_that_come_out_of_it(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Spark's own steps drop what is late for them; all else is judged as without them."""
    change, expected = ADOPTED[name]
    assert run(spark, tmp_path, change, starts=3) == expected


def with_value(rows: DataFrame) -> DataFrame:
    return rows.withColumn("v", F.lit(1).cast("bigint"))


def with_time(rows: DataFrame, name: str) -> DataFrame:
    return rows.withColumn(name, F.current_timestamp())


#: A strategy that asks for more than Spark's watermark has.
GUARDED, PUNCTUATED = WATERMARKS.guard("1 hour"), gw.WatermarkStrategy.for_punctuated("ts")
STILL = gw.WatermarkStrategy.no_watermarks()


#: Where Spark may keep the state of its own steps: with what its commits say of it, or by number.
STORES: dict[str, dict[str, str]] = {
    "by identity": {
        "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
    },
    "by number": {},
}


@pytest.mark.thorough
@pytest.mark.parametrize("settings", STORES.values(), ids=STORES)
def test_steps_go_on_where_a_sink_has_died(
    spark: SparkSession, tmp_path: Path, settings: dict[str, str]
) -> None:
    """Spark's state is that of the micro-batch which is delivered again."""
    change, expected = ADOPTED["dropDuplicates"]
    files(tmp_path / "in", [seconds(rows) for rows in BATCHES])
    outputs = windows_of(change(streamed(spark, tmp_path / "in", seconds(BATCHES[0]))))
    dying, state = Dies(gw.ParquetSink(tmp_path / "out"), 1), tmp_path / "state"
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        fails(lambda: dying_run(outputs, dying, state), "dies here")
        run_to_the_end(outputs, tmp_path)
    finally:
        for name in settings:
            spark.conf.unset(name)
    assert written(spark, tmp_path) == expected


def view_of(rows: DataFrame) -> DataFrame:
    rows.createOrReplaceTempView("upstream_rows")
    return rows.sparkSession.sql("WITH own AS (SELECT * FROM upstream_rows) SELECT * FROM own")


def chosen_of_view(rows: DataFrame, text: str) -> DataFrame:
    """Rows of `spark.sql`, whose plan Spark does not optimize before a stream starts."""
    rows.createOrReplaceTempView("upstream_rows")
    return rows.sparkSession.sql(text)


def mapped(rows: DataFrame) -> DataFrame:
    return rows.mapInArrow(lambda batches: batches, rows.schema)


def with_states(rows: DataFrame) -> DataFrame:
    return rows.groupBy("k").applyInPandasWithState(
        lambda *_: iter(()), "k string, ts timestamp, v long", "n long", "append", "NoTimeout"
    )


class Keeps(StatefulProcessor):
    """Spark's own kind of state; it is never called."""

    def init(self, handle: Any) -> None:
        del handle

    def handleInputRows(self, *_: Any) -> Iterator[Any]:  # noqa: N802 - as Spark calls it
        yield from ()

    def close(self) -> None: ...


def with_processor(rows: DataFrame) -> DataFrame:
    of_key = rows.groupBy("k")
    return of_key.transformWithStateInPandas(Keeps(), "k string, n long", "append", "none")


def counted(rows: DataFrame) -> DataFrame:
    counts = rows.groupBy(F.window("ts", "10 seconds"), "k").count()
    return counts.select("k", F.window_time("window").alias("ts"))


def static(rows: DataFrame) -> DataFrame:
    """A batch that has all that is refused of streams."""
    names = rows.sparkSession.createDataFrame([("a", 1), ("a", 1)], "k string, x long")
    return names.distinct().groupBy("k").count().orderBy("k").limit(3).join(names, "k")


HARMLESS: dict[str, Change] = {
    "steps of a batch": lambda rows: rows.join(static(rows), "k"),
    "rows at a time": lambda rows: mapped(rows.where("v > 0").union(rows)),
    "words in a text": lambda rows: rows.withColumn("x", F.lit("\nAggregate\n+- Sort [k]")),
}
TAKEN: dict[str, Change] = {
    "renamed": lambda rows: marked(rows).withColumnRenamed("ts", "t").withColumnRenamed("t", "ts"),
    "of a view": lambda rows: view_of(marked(rows)),
    "not needed": lambda rows: with_value(mapped(marked(rows).where("v > 0").drop("v"))),
    "beside a batch": lambda rows: marked(rows).join(static(rows), "k"),
}
TAKEN_NOTE = "the watermark is that of withWatermark before gw.stream"


@pytest.fixture(scope="module")
def rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    return streamed(spark, tmp_path_factory.mktemp("rows"), seconds(BATCHES[0]))


@pytest.mark.parametrize("name", quick(HARMLESS, "steps of a batch"))
def test_what_keeps_nothing_is_not_told(rows: DataFrame, name: str) -> None:
    assert "gw.stream" not in windows_of(HARMLESS[name](rows)).explain()


@pytest.mark.parametrize("name", quick(TAKEN, "of a view"))
def test_the_watermark_that_is_asked_for_is_taken(rows: DataFrame, name: str) -> None:
    assert TAKEN_NOTE in windows_of(TAKEN[name](rows)).explain()


def test_steps_that_are_taken_are_told_and_belong_to_the_query(rows: DataFrame) -> None:
    made: Any = windows_of(marked(rows).dropDuplicates(["k", "ts"]))
    assert TAKEN_NOTE in made.explain()
    assert "what dropDuplicates drops before gw.stream, late rows too, is lost" in made.explain()
    assert made.manifest.facts["steps before"] == "Deduplicate"
    assert "steps before" not in windows_of(marked(rows)).manifest.facts  # type: ignore[attr-defined]


def joined(rows: DataFrame) -> DataFrame:
    other = rows.selectExpr("k", "ts AS at").withWatermark("at", "5 seconds")
    return marked(rows).join(other, ["k"])


STATEFUL: dict[str, tuple[Change, str]] = {
    "groupBy": (
        lambda rows: counted(marked(rows)),
        "groupBy or DISTINCT in SQL cannot be before gw.stream.*stream_results",
    ),
    "sum of all": (
        lambda rows: rows.groupBy("k").agg(F.max("ts").alias("ts")),
        "groupBy or DISTINCT in SQL cannot",
    ),
    "SELECT DISTINCT": (
        lambda rows: rows.sparkSession.sql("SELECT DISTINCT * FROM {rows}", rows=rows),
        "groupBy or DISTINCT in SQL cannot",
    ),
    "SELECT DISTINCT of a view": (
        lambda rows: chosen_of_view(marked(rows), "SELECT DISTINCT * FROM upstream_rows"),
        r"DISTINCT in SQL cannot.*dropDuplicates\(\)",
    ),
    "UNION": (
        lambda rows: chosen_of_view(
            rows, "SELECT * FROM upstream_rows UNION SELECT * FROM upstream_rows"
        ),
        "DISTINCT in SQL cannot",
    ),
    "join": (joined, "a join of streams cannot.*key_by"),
    "limit": (lambda rows: rows.limit(3), "limit cannot.*leave it out"),
    "orderBy": (lambda rows: rows.orderBy("ts"), "orderBy cannot.*arrival_order"),
    "sample": (lambda rows: rows.sample(fraction=0.5, seed=1), "sample cannot"),
    "states": (lambda rows: with_time(with_states(rows), "ts"), "applyInPandasWithState"),
    "a processor": (
        lambda rows: with_time(with_processor(rows), "ts"),
        r"transformWithState cannot.*key_by\(...\).process",
    ),
}
WATERMARKED: dict[str, tuple[Change, gw.WatermarkStrategy, str]] = {
    "another delay": (
        lambda rows: rows.withWatermark("ts", "1 minute"),
        WATERMARKS,
        r'leave out withWatermark.*withWatermark\("ts", "5000 milliseconds"\), got 60000 ',
    ),
    "another column": (
        lambda rows: with_time(rows, "at").withWatermark("at", "5 seconds"),
        WATERMARKS,
        "got that of another column",
    ),
    "derived": (
        lambda rows: marked(rows).withColumn("ts", F.expr("ts + interval 1 hour")),
        WATERMARKS,
        "got that of another column",
    ),
    "an input of a union": (
        lambda rows: marked(rows).union(rows),
        WATERMARKS,
        "got one in an input of a union",
    ),
    "both inputs of a union": (
        lambda rows: marked(rows).union(marked(rows)),
        WATERMARKS,
        "got 2 of them",
    ),
    "a guard": (marked, GUARDED, "leave out withWatermark before gw.stream, got 5000 milliseconds"),
    "punctuated": (
        marked,
        PUNCTUATED,
        "leave out withWatermark before gw.stream, got 5000 milliseconds",
    ),
    "time stands still": (
        marked,
        STILL,
        "leave out withWatermark before gw.stream, got 5000 milliseconds",
    ),
}


@pytest.mark.parametrize("name", quick(STATEFUL, "groupBy", "join"))
def test_steps_whose_rows_come_late_are_refused(rows: DataFrame, name: str) -> None:
    """When the query is built, with what to do; a window would never have a row of theirs."""
    change, rule = STATEFUL[name]
    with pytest.raises(UnsupportedQueryError, match=rule):
        windows_of(with_value(change(rows)))


@pytest.mark.parametrize("name", quick(WATERMARKED, "another delay", "an input of a union"))
def test_other_watermarks_are_refused(rows: DataFrame, name: str) -> None:
    change, watermarks, rule = WATERMARKED[name]
    with pytest.raises(UnsupportedQueryError, match=rule):
        windows_of(change(rows), watermarks)


@pytest.mark.thorough
def test_every_input_is_looked_at(rows: DataFrame) -> None:
    """Of unions, joins, connected and broadcast streams; watermarks of each may be taken."""

    def timed(frame: DataFrame) -> gw.typing.TimedStream:
        return gw.stream(frame).event_time("ts", WATERMARKS)

    def together(one: DataFrame, other: DataFrame) -> Iterator[gw.typing.Outputs]:
        window = gw.TumblingEventTimeWindows.of("10 seconds")
        union = timed(one).union(timed(other)).key_by("k").window(window)
        yield union.with_outputs().aggregate(n=gw.count())
        keyed, right = timed(one).key_by("k"), timed(other).key_by("k")
        yield (
            keyed.interval_join(right)
            .between("-5 seconds", "5 seconds")
            .with_outputs()
            .select(["v"], ["v"])
        )

    for made in together(marked(rows), marked(rows).dropDuplicates(["v"])):
        assert made.explain().count(TAKEN_NOTE) == 1
        assert made.manifest.facts["steps before"] == "Deduplicate"  # type: ignore[attr-defined]
    for one, other in ((rows, rows.limit(3)), (rows.limit(3), rows)):
        for number in range(2):
            with pytest.raises(UnsupportedQueryError, match="limit cannot"):
                list(zip(range(number + 1), together(one, other), strict=False))


def test_queries_without_event_time_take_no_notice(rows: DataFrame) -> None:
    counts = (
        gw.stream(marked(rows)).key_by("k").count_window(3).with_outputs().aggregate(n=gw.count())
    )
    idle = windows_of(marked(rows), WATERMARKS.with_idleness("1 minute"))
    for made in (counts, idle):
        assert "withWatermark before gw.stream moves nothing here" in made.explain()


PLAN = """== Parsed Logical Plan ==
'Aggregate ['k]

== Analyzed Logical Plan ==
k: string, ts: timestamp
{0}Join Inner, (k#1 = k#2)
:- {0}Deduplicate [k#1], true
:  +- {0}EventTimeWatermark ts#3: timestamp, 5 seconds
:     +- {0}Filter (k#1 = a
b)
:        +- StreamingRelation FileSource[in], [k#1, ts#3]
+- Aggregate [k#2], [k#2]
   +- LogicalRDD [k#2], false

== Optimized Logical Plan ==
{1}

== Physical Plan ==
Sort [k#1 ASC], true
+- StreamingRelation FileSource[in], [k#1, ts#3]
"""


@pytest.mark.parametrize("sign", ["", "~"], ids=["Spark 4.0", "Spark 4.3"])
def test_plans_of_all_releases(sign: str) -> None:
    """Where a plan cannot be optimized the error stands in its place."""
    found = Upstream.from_text(PLAN.format(sign, "DIVIDE_BY_ZERO"))
    assert found == Upstream(watermarks=1, steps=("Deduplicate",))
    optimized = f"{sign}TransformWithState x\n+- StreamingRelationV2 in"
    assert Upstream.from_text(PLAN.format(sign, optimized)).steps == ("TransformWithState",)
