"""Stages of every kind on streams: what a table gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from tests.operators.process.functions import Everything
from tests.spark_glue.stream_runs import BEGIN, SECOND, WATERMARKS, files, streamed
from tests.spark_glue.streams.test_stages import HALF, MINUTE, in_time, minutes, rows_of, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

OPTIONS: dict[str, Any] = {"device": "cpu", "shards": 2}


def timed(source: Any) -> gw.typing.TimedStream:
    return gw.stream(source).event_time("ts", WATERMARKS)


def counted(rows: gw.typing.TimedStream, *keys: str, **aggregates: Any) -> gw.typing.Outputs:
    windowed = rows.key_by(*keys).window(MINUTE).options(**OPTIONS)
    return windowed.with_outputs().aggregate(rows=gw.count(), **aggregates)


def of_frames(source: Any) -> gw.typing.Outputs:
    over = timed(source).key_by("k").over(gw.Range("30 seconds")).arrival_order("seq")
    made = (
        over.options(**OPTIONS)
        .with_outputs()
        .aggregate(["seq", "text"], n=gw.count(), total=gw.sum("v"))
    )
    return counted(gw.stream_results(made, "over"), "text", n=gw.sum("n"), most=gw.max("total"))


def of_frames_to_come(source: Any) -> gw.typing.Outputs:
    frame = gw.Range("10 seconds", "20 seconds")
    over = timed(source).key_by("k").over(frame).arrival_order("seq").options(**OPTIONS)
    return counted(
        gw.stream_results(over.with_outputs().aggregate(["text"], n=gw.count())),
        "text",
        n=gw.sum("n"),
    )


def of_a_process_function(source: Any) -> gw.typing.Outputs:
    function = Everything(uses_processing_time=False)
    if isinstance(source, pa.Table):
        source = source.set_column(source.schema.get_field_index("v"), "v", source["seq"])
    else:
        source = source.withColumn("v", source["seq"])
    made = timed(source).key_by("k").with_outputs().process(
        function, ("v",), output=function.output, arrival_order=("v",), **OPTIONS
    )  # fmt: skip
    return counted(gw.stream_results(made, "process"), "k")


def of_first_rows(source: Any) -> gw.typing.Outputs:
    windowed = timed(source).key_by("k").window(HALF).options(**OPTIONS)
    by: dict[str, Any] = {"descending": [True, False], "columns": ["seq", "v", "text"]}
    made = windowed.with_outputs().top(3, ["text", "v"], **by)
    return counted(gw.stream_results(made, "top"), "text", total=gw.sum("seq"))


def of_first_keys(source: Any) -> gw.typing.Outputs:
    windowed = timed(source).key_by("k", "text").window(HALF).options(**OPTIONS)
    made = windowed.top_keys(3, "n").with_outputs().aggregate(n=gw.count(), total=gw.sum("v"))
    return counted(gw.stream_results(made, "top"), "text", n=gw.sum("n"))


def of_sessions(source: Any) -> gw.typing.Outputs:
    sessions = gw.EventTimeSessionWindows.with_gap("4 seconds")
    windowed = timed(source).key_by("k", "text").window(sessions).options(**OPTIONS)
    return counted(
        gw.stream_results(windowed.with_outputs().aggregate(n=gw.count())), "text", n=gw.sum("n")
    )


def of_grouping_sets(source: Any) -> gw.typing.Outputs:
    windowed = timed(source).key_by("k", "text").window(HALF).options(**OPTIONS)
    made = windowed.grouping_sets(["k"], ["text"], []).with_outputs().aggregate(n=gw.count())
    return counted(gw.stream_results(made), "grouping_id", n=gw.sum("n"))


def of_pairs(source: Any) -> gw.typing.Outputs:
    left, right = timed(source).key_by("k"), timed(source).key_by("k")
    pairs = left.interval_join(right).between("1 second", "3 seconds").options(**OPTIONS)
    made = pairs.with_outputs().select(["text", "seq"], {"other": "seq"}, how="left")
    return counted(gw.stream_results(made, "pairs"), "left_text", pairs=gw.count("other"))


def frames_of(source: Any) -> gw.typing.Outputs:
    keyed = gw.stream_results(minutes(source), "minutes").key_by("text")
    return (
        keyed.over(gw.Range("1 minute"))
        .options(**OPTIONS)
        .with_outputs()
        .aggregate(["k", "n"], s=gw.sum("n"))
    )


def sessions_of(source: Any) -> gw.typing.Outputs:
    keyed = gw.stream_results(minutes(source), "minutes").key_by("text")
    windowed = keyed.window(gw.EventTimeSessionWindows.with_gap("10 seconds"))
    return windowed.options(**OPTIONS).with_outputs().aggregate(n=gw.sum("n"))


def _both(source: Any) -> list[gw.typing.TimedStream]:
    kinds = {"half": HALF, "whole": MINUTE}
    made = {
        name: timed(source).key_by("k", "text").window(each).options(**OPTIONS)
        for name, each in kinds.items()
    }
    return [
        gw.stream_results(each.with_outputs().aggregate(n=gw.count()), name)
        for name, each in made.items()
    ]


def of_a_union(source: Any) -> gw.typing.Outputs:
    half, whole = _both(source)
    return counted(half.union(whole), "text", n=gw.sum("n"))


def join_of_windows(source: Any) -> gw.typing.Outputs:
    half, whole = (each.key_by("text") for each in _both(source))
    joined = half.join(whole).window(MINUTE).options(**OPTIONS)
    return joined.with_outputs().select({"half": "n"}, {"whole": "n"}, how="full")


def nearest_of(source: Any) -> gw.typing.Outputs:
    half, whole = (each.key_by("k", "text") for each in _both(source))
    pairs = half.interval_join(whole).between("-20 seconds", "40 seconds").nearest("after")
    return pairs.options(**OPTIONS).with_outputs().select(["n"], {"whole": "n"}, how="left")


def with_a_stream(source: Any) -> gw.typing.Outputs:
    """Results of a stage joined with rows of a stream: both are read in one query."""
    half = gw.stream_results(minutes(source), "minutes").key_by("k", "text")
    rows = timed(source).key_by("k", "text")
    pairs = half.interval_join(rows).between("-10 seconds", "0 seconds").options(**OPTIONS)
    made = pairs.with_outputs().select(["n"], ["seq"], how="left")
    return counted(gw.stream_results(made, "pairs"), "text", pairs=gw.count("right_seq"))


def union_with_a_stream(source: Any) -> gw.typing.Outputs:
    """The watermark of a stream and that of a stage, the least of which counts."""
    half = gw.stream_results(minutes(source).select("text", "n"), "minutes")
    if isinstance(source, pa.Table):
        few = source.select(["text", "seq", "ts"]).rename_columns(["text", "n", "ts"])
    else:
        few = source.selectExpr("text", "seq AS n", "ts")
    return counted(half.union(timed(few)), "text", n=gw.sum("n"))


def four_stages(source: Any) -> gw.typing.Outputs:
    made = minutes(source)
    for _ in range(3):
        made = counted(gw.stream_results(made), "text", n=gw.sum("n"))
    return made


KINDS: dict[str, Callable[[Any], gw.typing.Outputs]] = {
    make.__name__: make
    for make in (of_frames, of_frames_to_come, of_a_process_function, of_first_rows,
                 of_first_keys, of_sessions, of_grouping_sets, of_pairs, frames_of, sessions_of,
                 of_a_union, join_of_windows, nearest_of, with_a_stream, union_with_a_stream,
                 four_stages)
}  # fmt: skip
#: Rows of another time, the second of which ends all windows of the first.
LAST = 99


def ends() -> list[pa.Table]:
    """Two rows of a key of its own, an hour apart, after all others."""
    (row,) = (table.slice(0, 1) for table in in_time(1, 1))
    found = []
    for number, hours in enumerate((2, 3)):
        at = pa.array([BEGIN + hours * 3600 * SECOND], pa.timestamp("us", "UTC"))
        other = {"ts": at, "k": pa.array([LAST]), "seq": pa.array([10**6 + number])}
        table = row
        for name, column in other.items():
            table = table.set_column(table.schema.get_field_index(name), name, column)
        found.append(table)
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_gives_what_a_table_gives(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    tables = in_time(3, 200)
    files(tmp_path / "in", [*tables, *ends()])
    run(KINDS[kind](streamed(spark, tmp_path / "in")), tmp_path)
    found = rows_of(gw.read_output(spark, tmp_path / "out").toArrow())
    wanted = rows_of(KINDS[kind](pa.concat_tables(tables)).result())
    assert sum(wanted.values()) > 5
    assert wanted - found == {}
    first = BEGIN + 3600 * SECOND
    more = [
        row
        for row in found - wanted
        if row[0] != LAST and not any(_is_after(first, each) for each in row)
    ]
    assert more == []


def _is_after(first: int, value: Any) -> bool:
    return isinstance(value, int) and value > first
