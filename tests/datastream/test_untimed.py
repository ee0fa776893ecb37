"""Windows that need no time: of rows whose time is null, and of tables without any."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.windows import GlobalWindows
from tests.lanes import quick
from tests.operators.driven import Driven
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import files, results_in, run_to_the_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = pa.table(
    {
        "k": ["a", "b", "a", "a", "b", "a", "a", None, None],
        "v": [1, 2, 3, 4, 5, 6, 7, 8, 9],
        "seq": list(range(9)),
    }
)
WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()

#: What needs no time, to the function's results by key.
WINDOWS: dict[str, tuple[Any, list[tuple[Any, ...]]]] = {
    "count": (
        lambda s: s.count_window(2).aggregate(total=gw.sum("v")),
        [("a", 4), ("a", 10), ("b", 7), (None, 17)],
    ),
    "count and slide": (
        lambda s: s.count_window(3, 2).aggregate(total=gw.sum("v"), last=gw.last("v")),
        [("a", 4, 3), ("a", 13, 6), ("b", 7, 5), (None, 17, 9)],
    ),
    "rows": (
        lambda s: s.count_window(2).collect_lists("v"),
        [("a", [1, 3]), ("a", [4, 6]), ("b", [2, 5]), (None, [8, 9])],
    ),
    "delta": (
        lambda s: (
            s.window(gw.GlobalWindows.create())
            .trigger(gw.DeltaTrigger.of(2, gw.Delta.new_minus_old("v")))
            .aggregate(n=gw.count())
        ),
        [("a", 3), ("a", 5), ("b", 2)],
    ),
    "all": (
        lambda s: s.window(gw.GlobalWindows.create_with_end_of_stream_trigger()).collect_lists("v"),
        [("a", [1, 3, 4, 6, 7]), ("b", [2, 5]), (None, [8, 9])],
    ),
    "time evictor": (
        lambda s: (
            s.window(gw.GlobalWindows.create())
            .trigger(gw.CountTrigger.of(2))
            .evictor(gw.TimeEvictor.of("0 s", evict_after=True))
            .aggregate(n=gw.count())
        ),
        [("a", 2), ("a", 4), ("b", 2), (None, 2)],
    ),
}


class _Said:
    """Says of a stream's windows what a test says of all."""

    def __init__(self, keyed: gw.typing.KeyedStream, engine: str) -> None:
        self._keyed, self._engine = keyed, engine

    def __getattr__(self, name: str) -> Any:
        def said(*arguments: Any) -> Any:
            made = getattr(self._keyed, name)(*arguments)
            return made.arrival_order("seq").options(engine=self._engine, device="cpu")

        return said


def results(found: pa.Table) -> list[tuple[Any, ...]]:
    assert found["window_start"].null_count == found["window_end"].null_count == len(found)
    return rows_of(found.drop_columns(["window_start", "window_end"]))


def timed(source: Any) -> gw.typing.TimedStream:
    return gw.stream(source).event_time("ts", WATERMARKS)


NULLS = TABLE.append_column("ts", pa.nulls(len(TABLE), pa.timestamp("us", "UTC")))


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("name", WINDOWS)
def test_tables(name: str, engine: str) -> None:
    build, wanted = WINDOWS[name]
    for keyed in (
        gw.stream(TABLE).key_by("k"),
        gw.stream(TABLE.to_reader(4)).key_by("k"),
        timed(NULLS).key_by("k"),
    ):
        assert results(build(_Said(keyed, engine))) == sorted(wanted, key=repr)


@pytest.mark.spark
@pytest.mark.parametrize("name", quick(WINDOWS, "count", "time evictor"))
def test_batches(spark: SparkSession, name: str) -> None:
    build, wanted = WINDOWS[name]
    for keyed in (
        gw.stream(spark.createDataFrame(TABLE)).key_by("k"),
        timed(spark.createDataFrame(NULLS)).key_by("k"),
    ):
        assert results(build(_Said(keyed, "auto")).toArrow()) == sorted(wanted, key=repr)


@pytest.mark.thorough
@pytest.mark.spark
def test_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", [TABLE.slice(0, 4), TABLE.slice(4)])
    schema = spark.createDataFrame(TABLE).schema
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    stream = gw.stream(source.parquet(str(tmp_path / "in")))
    keyed = stream.key_by("k").count_window(2).arrival_order("seq")
    made = keyed.options(device="cpu", shards=2).with_outputs().aggregate(total=gw.sum("v"))
    assert "time      none" in made.explain()
    run_to_the_end(made, tmp_path)
    wanted = [(key, None, None, total) for key, total in WINDOWS["count"][1]]
    assert results_in(spark, tmp_path) == sorted(wanted, key=repr)
    together = (
        stream.count_window_all(2).arrival_order("seq").with_outputs().aggregate(total=gw.sum("v"))
    )
    assert "one task sees them" in together.explain()


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_what_users_see_is_theirs(engine: str) -> None:
    made = gw.stream(TABLE).key_by("k").count_window(2).options(engine=engine)
    outputs = made.with_outputs().aggregate(n=gw.count())
    assert outputs.result().column_names == ["k", "window_start", "window_end", "n"]
    assert outputs.late().schema.names == TABLE.column_names
    assert outputs.rejected().schema.names == [*TABLE.column_names, "rejection_reason"]
    assert outputs.metrics()["rows"].to_pylist() == [len(TABLE)]
    own = TABLE.append_column("__no_time", TABLE["v"])
    with pytest.raises(errors.NameClashError, match="__no_time"):
        gw.stream(own).key_by("k")


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda k: k.window(gw.TumblingEventTimeWindows.of("1 s")), "tumbling 1 s"),
        (lambda k: k.window(gw.EventTimeSessionWindows.with_gap("1 s")), "sessions"),
        (
            lambda k: k.window(gw.GlobalWindows.create()).trigger(
                gw.ContinuousEventTimeTrigger.of("1 s")
            ),
            "every 1 s",
        ),
    ],
)
def test_what_needs_a_time(build: Any, text: str) -> None:
    with pytest.raises(errors.QueryError, match=f"rows need a time: call event_time.*{text}"):
        build(gw.stream(TABLE).key_by("k")).aggregate(n=gw.count())
    with pytest.raises(errors.UnsupportedQueryError, match="processing time has no meaning"):
        gw.stream(TABLE).key_by("k").window(gw.TumblingProcessingTimeWindows.of("1 s")).aggregate(
            n=gw.count()
        )


def test_joins_in_time_need_a_time() -> None:
    keyed = gw.stream(TABLE).key_by("k")
    with pytest.raises(errors.QueryError, match="both sides need a time"):
        keyed.join(keyed).window(gw.TumblingEventTimeWindows.of("1 s")).select(["v"], ["v"])
    with pytest.raises(errors.QueryError, match="both sides need a time"):
        keyed.interval_join(keyed).between("-1 s", "1 s").select(["v"], ["v"])


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_sides_of_rows_without_a_time(engine: str) -> None:
    """Each side is counted by what is there of it, not by its times."""
    keyed = gw.stream(TABLE).key_by("k")
    grouped = keyed.co_group(gw.stream(TABLE.slice(2, 3)).key_by("k"))
    windowed = grouped.window(gw.GlobalWindows.create_with_end_of_stream_trigger())
    found = windowed.options(engine=engine).aggregate(
        left={"n": gw.count()}, right={"m": gw.count(), "total": gw.sum("v")}
    )
    assert results(found) == sorted([("a", 5, 2, 7), ("b", 2, 1, 5), (None, 2, 0, None)], key=repr)


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("put_away", [False, True])
def test_a_continuous_trigger_needs_the_times_of_rows(engine: Any, put_away: bool) -> None:
    """From the first of all times on it would fire without end, as it does in Flink."""
    told = Driven(
        gw.TumblingProcessingTimeWindows(100),
        trigger=gw.ContinuousEventTimeTrigger(10),
        engine=engine,
        put_away=put_away,
    )
    told.rows(("a", None, 1), ("a", 3, 2))
    assert told.counters.null_timestamp == 1
    assert told.watermark(10) == [("a", 0, 100, [2])]


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("put_away", [False, True])
def test_a_time_evictor_and_rows_without_a_time(engine: Any, put_away: bool) -> None:
    """Where the first row has none, all stay; else a row without one is the oldest."""
    told = Driven(
        GlobalWindows(),
        trigger=gw.CountTrigger.of(2),
        evictor=gw.TimeEvictor(False, 10),
        engine=engine,
        put_away=put_away,
    )
    assert told.rows(("a", None, 1), ("a", 90, 2), ("a", 5, 3), ("a", 91, 4)) == [
        ("a", None, None, [1, 2]),
        ("a", None, None, [1, 2, 3, 4]),
    ]
    assert told.rows(("b", 90, 1), ("b", None, 2)) == [("b", None, None, [1])]
    assert told.rows(("b", 95, 3), ("b", 96, 4)) == [("b", None, None, [1, 3, 4])]


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("put_away", [False, True])
def test_the_end_of_time_is_no_end_of_global_windows(engine: Any, put_away: bool) -> None:
    told = Driven(
        GlobalWindows(),
        trigger=gw.CountTrigger.of(2),
        allowed_lateness=5,
        engine=engine,
        put_away=put_away,
    )
    assert told.rows(("a", 1, 1)) == told.watermark(LONG_MAX) == []
    assert told.rows(("a", 2, 2)) == [("a", None, None, [1, 2])]
    assert told.counters.late == 0
