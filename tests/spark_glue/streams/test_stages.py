"""Queries that go on from the results of others, as one streaming query: what batch gives."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import QueryError, StateMismatchError, UnsupportedQueryError
from tests.lanes import quick
from tests.spark_glue.stream_runs import (
    BEGIN,
    SECOND,
    WATERMARKS,
    batches,
    expected,
    files,
    streamed,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

HALF = gw.TumblingEventTimeWindows.of("20 seconds")
MINUTE = gw.TumblingEventTimeWindows.of("1 minute")


def in_time(count: int = 4, rows: int = 300) -> list[pa.Table]:
    """Rows of which none is late, then one that ends all windows of the others."""
    found = []
    for number, table in enumerate(batches(count, rows)):
        at = table["ts"].cast(pa.int64()).combine_chunks()
        begin = BEGIN + number * 60 * SECOND
        moved = [
            None if t is None else t if t >= begin else t + 90 * SECOND for t in at.to_pylist()
        ]
        ticks = pa.array(moved, pa.timestamp("us", "UTC"))
        found.append(table.set_column(0, "ts", ticks))
    return found


def minutes(source: Any, **options: Any) -> gw.typing.Outputs:
    timed = gw.stream(source).event_time("ts", WATERMARKS)
    windowed = timed.key_by("k", "text").window(HALF).options(device="cpu", shards=3, **options)
    return windowed.with_outputs().aggregate(n=gw.count(), total=gw.sum("v"))


def two_stages(source: Any) -> gw.typing.Outputs:
    rows = gw.stream_results(minutes(source), "fine")
    return (
        rows.key_by("text")
        .window(MINUTE)
        .options(device="cpu", shards=2)
        .with_outputs()
        .aggregate(windows=gw.count(), n=gw.sum("n"), most=gw.max("total"))
    )


def three_stages(source: Any) -> gw.typing.Outputs:
    again = gw.stream_results(two_stages(source), "coarse")
    windowed = again.window_all(gw.SlidingEventTimeWindows.of("2 minutes", "1 minute"))
    return windowed.with_outputs().top(2, "n", columns=["text", "n"])


def chosen(source: Any) -> gw.typing.Outputs:
    """Stages with selections of results and of rows between them.

    None of them could be computed of what passes between stages and is no row.
    """
    fine = minutes(source).select("k", "text", "n", per="total / n", where="1 / n > 0 AND k <> 3")
    rows = gw.stream_results(fine, "fine", keep=True).where("1 / coalesce(n, 0) > 0")
    more = rows.with_columns(share="per / coalesce(n, 0)", n="n + 1")
    half = more.key_by("text").window(MINUTE).options(device="cpu", shards=2)
    coarse = half.with_outputs().aggregate(windows=gw.count(), n=gw.sum("n"), most=gw.max("share"))
    again = gw.stream_results(coarse.select("text", "n", twice="windows * 2"), "coarse")
    windowed = again.where("twice > 2").window_all(gw.SlidingEventTimeWindows.of("2 min", "1 min"))
    return (
        windowed.with_outputs()
        .top(2, "n", columns=["text", "n", "twice"])
        .select("window_end", "n", "twice", loud="upper(text)")
    )


CHAINS = {"two": two_stages, "chosen": chosen, "three": three_stages}


def rows_of(table: pa.Table) -> Counter[Any]:
    """Rows as values, their times in ticks."""
    columns = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for column in table.columns
    ]
    return Counter(zip(*(column.to_pylist() for column in columns), strict=True))


def run(made: gw.typing.Outputs, folder: Path) -> None:
    out, state = folder / "out", folder / "state"
    query = gw.write_stream(made, out, state, trigger={"availableNow": True})
    query.awaitTermination()


def closed(made: gw.typing.Outputs, before: int) -> Counter[Any]:
    """The results of a bounded run whose windows end before a time."""
    found = made.result()
    ends = found["window_end"].cast(pa.int64()).to_pylist()
    return rows_of(found.filter(pa.array([end <= before for end in ends])))


@pytest.mark.parametrize("name", quick(CHAINS, nightly=["three", "chosen"]))
def test_a_chain_gives_on_streams_what_it_gives_on_a_table(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    tables = in_time()
    files(tmp_path / "in", tables[:2])
    run(CHAINS[name](streamed(spark, tmp_path / "in")), tmp_path)
    files(tmp_path / "in", tables)
    run(CHAINS[name](streamed(spark, tmp_path / "in")), tmp_path)
    whole = pa.concat_tables(tables)
    latest = pa.compute.max(whole["ts"]).cast(pa.int64()).as_py()
    wanted = closed(CHAINS[name](whole), latest - 5 * SECOND)
    assert rows_of(gw.read_output(spark, tmp_path / "out").toArrow()) == wanted
    assert wanted


def joined_windows(source: Any) -> gw.typing.Outputs:
    """Windows of two kinds over one source, joined by their results' time."""
    timed = gw.stream(source).event_time("ts", WATERMARKS).key_by("text")
    options = {"device": "cpu", "shards": 2}
    short = timed.window(HALF).options(**options).with_outputs().aggregate(n=gw.count())
    long = timed.window(MINUTE).options(**options).with_outputs().aggregate(n=gw.count())
    one, other = (
        gw.stream_results(each, name).key_by("text")
        for name, each in (("short", short), ("long", long))
    )
    pairs = one.interval_join(other).between("0 seconds", "50 seconds").options(**options)
    joined = pairs.with_outputs().select({"short": "n"}, {"long": "n", "at": "window_end"})
    last = gw.stream_results(joined, "pairs").key_by("text").window(MINUTE).options(**options)
    return last.with_outputs().aggregate(
        pairs=gw.count(), short=gw.sum("short"), long=gw.max("long")
    )


@pytest.mark.slow
def test_joins_of_windows_and_windows_of_joins(spark: SparkSession, tmp_path: Path) -> None:
    tables = in_time()
    files(tmp_path / "in", tables)
    run(joined_windows(streamed(spark, tmp_path / "in")), tmp_path)
    whole = pa.concat_tables(tables)
    latest = pa.compute.max(whole["ts"]).cast(pa.int64()).as_py()
    wanted = closed(joined_windows(whole), latest - 5 * SECOND)
    assert rows_of(gw.read_output(spark, tmp_path / "out").toArrow()) == wanted
    assert wanted


@pytest.mark.thorough
def test_outputs_and_metrics_of_every_stage_are_there(spark: SparkSession, tmp_path: Path) -> None:
    tables = batches(3, 200)  # some late, some without a time
    files(tmp_path / "in", tables)
    fine = minutes(streamed(spark, tmp_path / "in"))
    coarse = gw.stream_results(fine, "fine", keep=True).key_by("text").window(MINUTE)
    listener = gw.MetricsListener()
    spark.streams.addListener(listener)
    try:
        made = coarse.options(shards=2).with_outputs().aggregate(n=gw.sum("n"))
        out, state = tmp_path / "out", tmp_path / "state"
        query = gw.write_stream(made, out, state, trigger={"availableNow": True})
        query.awaitTermination()
    finally:
        spark.streams.removeListener(listener)
    results, late = expected(minutes(tables[0]), tables)
    read = {n: gw.read_output(spark, out, f"stages/fine/{n}").toArrow() for n in ("result", "late")}
    assert rows_of(read["result"]) == rows_of(results)
    assert Counter(read["late"]["rejection_reason"].to_pylist()) == Counter(
        late["rejection_reason"].to_pylist()
    )
    metrics = listener.of(query)
    assert metrics.stages["fine"].counters.rows == 600
    reasons = late["rejection_reason"].to_pylist()
    assert metrics.stages["fine"].counters.late == reasons.count("late") > 0
    assert metrics.counters.rows == len(results)
    assert "stage fine" in made.explain()


@pytest.mark.thorough
def test_late_rows_and_counters_pass_selections(spark: SparkSession, tmp_path: Path) -> None:
    tables = batches(3, 200)  # some late, some without a time
    files(tmp_path / "in", tables)
    fine = minutes(streamed(spark, tmp_path / "in")).select("text", twice="n * 2", where="n < 4")
    few = gw.stream_results(fine, "fine", keep=True).where("1 / coalesce(twice, 0) < 0.3")
    made = (
        few.key_by("text")
        .window(MINUTE)
        .options(shards=2)
        .with_outputs()
        .aggregate(n=gw.sum("twice"))
    )
    listener = gw.MetricsListener()
    spark.streams.addListener(listener)
    try:
        out, state = tmp_path / "out", tmp_path / "state"
        query = gw.write_stream(made, out, state, trigger={"availableNow": True})
        query.awaitTermination()
    finally:
        spark.streams.removeListener(listener)
    results, late = expected(minutes(tables[0]), tables)
    wanted = [(row["text"], 2 * row["n"]) for row in results.to_pylist() if row["n"] < 4]
    kept = gw.read_output(spark, out, "stages/fine/result").toArrow()
    assert rows_of(kept) == Counter(wanted)
    found = gw.read_output(spark, out, "stages/fine/late").toArrow()["rejection_reason"]
    assert Counter(found.to_pylist()) == Counter(late["rejection_reason"].to_pylist())
    metrics = listener.of(query)
    assert metrics.stages["fine"].counters.rows == 600
    assert metrics.counters.rows == sum(twice > 3 for _, twice in wanted) > 0


@pytest.mark.slow
def test_changed_selections_of_a_stage_are_another_query(
    spark: SparkSession, tmp_path: Path
) -> None:
    files(tmp_path / "in", batches(1, 20))
    source = streamed(spark, tmp_path / "in")

    def made(where: str, most: str) -> gw.typing.Outputs:
        rows = gw.stream_results(minutes(source).select("text", "n", where=where), "fine")
        windowed = rows.with_columns(most=most).key_by("text").window(MINUTE)
        coarse = (
            windowed.options(device="cpu", shards=2).with_outputs().aggregate(most=gw.max("most"))
        )
        last = gw.stream_results(coarse, "coarse").window_all(MINUTE)
        return last.with_outputs().aggregate(most=gw.max("most")).select("most")

    run(made("n > 1", "n + 1"), tmp_path)
    with pytest.raises(
        StateMismatchError, match=r"fine\.selection was where n > 1.*is where n > 0"
    ):
        run(made("n > 0", "n + 1"), tmp_path)
    with pytest.raises(
        StateMismatchError, match=r"coarse\.rows was most = n \+ 1, is most = n \+ 2"
    ):
        run(made("n > 1", "n + 2"), tmp_path)
    run(made("n > 1", "n + 1"), tmp_path)


@pytest.mark.slow
def test_a_changed_stage_is_another_query(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(1, 20))
    source = streamed(spark, tmp_path / "in")
    run(two_stages(source), tmp_path)
    rows = gw.stream_results(minutes(source, batch_rows=64), "fine")
    with pytest.raises(StateMismatchError, match=r"fine\.columns was k int64"):
        run(_like_two(gw.stream_results(minutes(source), "other")), tmp_path)
    timed = gw.stream(source).event_time("ts", WATERMARKS).key_by("k", "text").window(MINUTE)
    other = (
        timed.options(device="cpu", shards=3)
        .with_outputs()
        .aggregate(n=gw.count(), total=gw.sum("v"))
    )
    with pytest.raises(StateMismatchError, match=r"fine\.window\.size was 20 s, is 1 min"):
        run(_like_two(gw.stream_results(other, "fine")), tmp_path)
    run(_like_two(rows), tmp_path)


def _like_two(rows: gw.typing.TimedStream) -> gw.typing.Outputs:
    windowed = rows.key_by("text").window(MINUTE).options(device="cpu", shards=2)
    return windowed.with_outputs().aggregate(
        windows=gw.count(), n=gw.sum("n"), most=gw.max("total")
    )


def test_what_cannot_be_a_stage_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source: DataFrame = streamed(spark, tmp_path / "in")
    keyed = gw.stream(source).processing_time().key_by("k")
    by_clock = keyed.window(gw.TumblingProcessingTimeWindows.of("1 minute"))
    with pytest.raises(UnsupportedQueryError, match="must use event time: write the"):
        gw.stream_results(by_clock.with_outputs().aggregate(n=gw.count()))
    closing = WATERMARKS.with_idleness("1 minute").close_when_idle()
    idle = gw.stream(source).event_time("ts", closing).key_by("k")
    with pytest.raises(UnsupportedQueryError, match="the clock cannot advance event time"):
        gw.stream_results(idle.window(MINUTE).with_outputs().aggregate(n=gw.count()))
    fine = gw.stream_results(minutes(source), "fine").key_by("text")
    with pytest.raises(UnsupportedQueryError, match="must use event time"):
        fine.window(gw.TumblingProcessingTimeWindows.of("1 minute")).with_outputs().aggregate(
            n=gw.count()
        )
    with pytest.raises(QueryError, match=r"a name of its own.*got fine"):
        fine.interval_join(fine).between("0 seconds", "1 second").with_outputs().select(
            ["n"], ["n"]
        )
