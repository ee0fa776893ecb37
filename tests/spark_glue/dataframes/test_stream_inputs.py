"""A query that starts again reads its inputs in the order in which it first read them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import QueryError, StateMismatchError
from gpu_windows.planning.input_facts import InputFacts
from gpu_windows.spark_glue.contract.manifest import Manifest
from gpu_windows.spark_glue.dataframes.plan_text import read_plan_text
from gpu_windows.spark_glue.dataframes.stream_inputs import (
    StreamInput,
    join_inputs,
    read_sources,
    warn_of_alike,
)
from tests.spark_glue.stream_runs import WATERMARKS, files, seconds, streamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW = [("a", 0, 0)]
NOTHING = pa.schema([("n", pa.int64())])


class Sizes(gw.functions.CoGroupFunction):
    def co_group(self, key: Any, context: Any, left: Any, right: Any) -> list[dict[str, Any]]:
        return []


class Rules(gw.functions.KeyedBroadcastProcessFunction):
    def process_element(self, row: Any, context: Any) -> None:
        del row, context

    def process_broadcast_element(self, row: Any, context: Any) -> None:
        del row, context


MINUTE = gw.TumblingEventTimeWindows.of("1 minute")
#: Makes a query of streams of three folders, in the order in which they are given.
Builder = Callable[[list[gw.typing.TimedStream]], gw.typing.Outputs]


def counted(rows: gw.typing.TimedStream) -> gw.typing.Outputs:
    return (
        rows.key_by("k")
        .window(MINUTE)
        .options(device="cpu", shards=1)
        .with_outputs()
        .aggregate(n=gw.count())
    )


def in_union(of: list[gw.typing.TimedStream]) -> gw.typing.Outputs:
    return counted(of[0].union(*of[1:]))


def in_nested_union(of: list[gw.typing.TimedStream]) -> gw.typing.Outputs:
    return counted(of[0].union(of[1].union(of[2])))


def in_interval_join(of: list[gw.typing.TimedStream]) -> gw.typing.Outputs:
    left, right = of[0].key_by("k"), of[1].union(of[2]).key_by("k")
    joined = left.interval_join(right).between("-1 minute", "1 minute")
    return joined.options(device="cpu", shards=1).with_outputs().select({"v": "v"}, {"w": "v"})


def in_window_join(of: list[gw.typing.TimedStream]) -> gw.typing.Outputs:
    left, right = of[0].key_by("k"), of[1].key_by("k")
    return (
        left.join(right)
        .window(MINUTE)
        .options(device="cpu", shards=1)
        .with_outputs()
        .select({"v": "v"}, {"w": "v"})
    )


def in_temporal_join(of: list[gw.typing.TimedStream]) -> gw.typing.Outputs:
    joined = of[0].key_by("k").temporal_join(of[1].key_by("k"))
    return joined.options(device="cpu", shards=1).with_outputs().select({"v": "v"}, {"w": "v"})


def in_co_group(of: list[gw.typing.TimedStream]) -> gw.typing.Outputs:
    both = of[0].key_by("k").co_group(of[1].union(of[2]).key_by("k")).window(MINUTE)
    return (
        both.options(device="cpu", shards=1)
        .with_outputs()
        .process(Sizes(), ["v"], ["v"], output=NOTHING)
    )


def in_broadcast(of: list[gw.typing.TimedStream]) -> gw.typing.Outputs:
    both = of[0].key_by("k").connect(of[1].broadcast())
    return both.with_outputs().process(Rules(), ["v"], ["v"], output=NOTHING, shards=1)


def in_stages(of: list[gw.typing.TimedStream]) -> gw.typing.Outputs:
    minutes = gw.stream_results(counted(of[0].union(of[1])))
    hours = minutes.key_by("k").window(gw.TumblingEventTimeWindows.of("1 hour"))
    return hours.options(device="cpu", shards=1).with_outputs().aggregate(n=gw.sum("n"))


def in_sql(of: list[gw.typing.TimedStream]) -> gw.typing.Outputs:
    text = (
        "SELECT a.k, a.v AS v, b.v AS w FROM a JOIN b ON a.k = b.k "
        "AND a.ts BETWEEN b.ts - INTERVAL '1' MINUTE AND b.ts + INTERVAL '1' MINUTE"
    )
    return gw.sql(text, a=of[0], b=of[1]).outputs()


BUILDERS = {
    "union": in_union,
    "nested union": in_nested_union,
    "interval join": in_interval_join,
    "window join": in_window_join,
    "temporal join": in_temporal_join,
    "co-group": in_co_group,
    "broadcast": in_broadcast,
    "stages": in_stages,
    "sql": in_sql,
}


def write_folders(root: Path) -> list[Path]:
    """Three folders of inputs, a file each of other rows."""
    folders = [root / name for name in ("clicks", "views", "sales")]
    for number, folder in enumerate(folders):
        files(folder, [seconds([("a", number, number)])])
    (root / "moved").mkdir()
    return folders


def timed(spark: SparkSession, folder: Path, name: str | None = None) -> gw.typing.TimedStream:
    frame = streamed(spark, folder, seconds(ROW))
    return gw.stream(frame, name=name).event_time("ts", WATERMARKS)


class Checkpoint:
    """What the commits of a checkpoint keep of its query, without the query."""

    def __init__(self) -> None:
        self.facts: str | None = None

    def start(self, outputs: gw.typing.Outputs) -> None:
        """Refuse another query than that of the start before, or keep what this one is."""
        manifest: Manifest = outputs.manifest  # type: ignore[attr-defined]
        if self.facts is not None:
            manifest = manifest.resume(Manifest.from_text(self.facts), {})
        self.facts = manifest.text


def run(outputs: gw.typing.Outputs, root: Path) -> None:
    once = {"availableNow": True}
    query = gw.write_stream(outputs, str(root / "out"), str(root / "checkpoint"), trigger=once)
    query.awaitTermination()


@pytest.mark.thorough
def test_a_union_is_not_read_in_another_order(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's offsets go by position: in another order rows of before would come again.

    A name that was said once is known from then on.
    """
    clicks, views, _ = write_folders(tmp_path)
    run(in_union([timed(spark, clicks, "clicks"), timed(spark, views)]), tmp_path)
    for each in (clicks, views):
        files(each, [seconds([("a", 0, 0)]), seconds([("b", 100, 0)])])
    with pytest.raises(StateMismatchError, match="source 1 reads what source 2 read"):
        run(in_union([timed(spark, views), timed(spark, clicks)]), tmp_path)
    run(in_union([timed(spark, clicks), timed(spark, views)]), tmp_path)
    with pytest.raises(StateMismatchError, match="input 1 was clicks, is sales"):
        run(in_union([timed(spark, clicks, "sales"), timed(spark, views)]), tmp_path)
    rows = gw.read_output(spark, tmp_path / "out").collect()
    assert [(row.k, row.n) for row in rows] == [("a", 2)]


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_no_query_takes_inputs_in_another_order(
    spark: SparkSession, tmp_path: Path, build: Builder
) -> None:
    """Names and plans are compared before anything runs, so no row is needed."""
    clicks, views, sales = write_folders(tmp_path)
    checkpoint = Checkpoint()

    def check(*folders: Path, names: tuple[str | None, ...] = (None,) * 3) -> None:
        streams = [timed(spark, each, name) for each, name in zip(folders, names, strict=True)]
        checkpoint.start(build(streams))

    check(clicks, views, sales)
    check(clicks, views, sales)
    for others in ((views, clicks, sales), (sales, clicks, views)):
        with pytest.raises(StateMismatchError, match=r"source \d reads what source \d read"):
            check(*others)
    check(tmp_path / "moved", views, sales)  # of an input that is read elsewhere nothing is said
    with pytest.raises(StateMismatchError, match="source 2 reads what source 1 read"):
        check(clicks, tmp_path / "moved", sales)


@pytest.mark.parametrize("build", [in_union, in_window_join], ids=["union", "join"])
def test_names_tell_inputs_apart_whatever_they_read(
    spark: SparkSession, tmp_path: Path, build: Builder
) -> None:
    folders = [tmp_path / name for name in "abcd"]
    for each in folders:
        files(each, [seconds(ROW)])
    checkpoint = Checkpoint()

    def check(*inputs: tuple[int, str | None]) -> None:
        streams = [timed(spark, folders[at], name) for at, name in inputs]
        checkpoint.start(build(streams))

    check((0, "clicks"), (1, "views"))
    with pytest.raises(StateMismatchError, match="input 1 was clicks, is views"):
        check((2, "views"), (3, "clicks"))
    with pytest.raises(StateMismatchError, match="input 2 was views, is sales"):
        check((0, "clicks"), (1, "sales"))
    check((2, None), (3, None))  # names may be left out, and are known all the same
    with pytest.raises(StateMismatchError, match="input 1 was clicks, is views"):
        check((2, "views"), (3, None))
    with pytest.raises(StateMismatchError, match="source 1 reads what source 2 read"):
        check((3, "clicks"), (2, "views"))


def test_frames_that_are_one_input_keep_their_order(spark: SparkSession, tmp_path: Path) -> None:
    """What was brought together before the query has sources of its own."""
    clicks, views, _ = write_folders(tmp_path)
    one, other = (streamed(spark, each, seconds(ROW)) for each in (clicks, views))
    checkpoint = Checkpoint()

    def check(frame: Any) -> None:
        rows = gw.stream(frame).event_time("ts", WATERMARKS)
        checkpoint.start(counted(rows))

    check(one.union(other))
    check(one.where("v > 3").union(other))
    with pytest.raises(StateMismatchError, match="source 1 reads what source 2 read"):
        check(other.union(one))
    with pytest.raises(StateMismatchError, match="sources of Spark's were 2, are 1"):
        check(one)


def test_the_names_of_a_statement_are_names_of_inputs(spark: SparkSession, tmp_path: Path) -> None:
    clicks, views, _ = write_folders(tmp_path)
    made: Any = in_sql([timed(spark, clicks), timed(spark, views, "seen")])
    (stage,) = made.stages
    assert [(each.name, each.time) for each in stage.inputs] == [("a", "ts"), ("seen", "ts")]
    assert [each.name for each in made.manifest.inputs] == ["a", "seen"]


@pytest.mark.parametrize("name", ["", " ", 3, b"clicks"])
def test_a_name_is_text(name: Any) -> None:
    with pytest.raises(QueryError, match="the name of an input is a text that is not empty"):
        gw.stream(seconds(ROW), name=name)


def test_two_inputs_have_two_names(spark: SparkSession, tmp_path: Path) -> None:
    clicks, views, _ = write_folders(tmp_path)
    one, other = (timed(spark, each, "clicks") for each in (clicks, views))
    for build in (in_union, in_window_join):
        with pytest.raises(QueryError, match="a name of its own, got 'clicks'"):
            build([one, other])
    halves: Any = in_union([one.where("v > 1"), one.where("v < 1")])
    assert len(halves.manifest.inputs) == 2


def test_sources_are_told_by_what_is_the_same_in_every_session(
    spark: SparkSession, tmp_path: Path
) -> None:
    clicks, *_ = write_folders(tmp_path)
    read = [read_sources(read_plan_text(streamed(spark, clicks, seconds(ROW)))) for _ in "ab"]
    assert read[0] == read[1]
    assert str(clicks) in read[0][0]
    slow, fast = (
        spark.readStream.format("rate").option("rowsPerSecond", each).load() for each in (1, 2)
    )
    (of_slow,), (again,), (of_fast,) = (
        read_sources(read_plan_text(each)) for each in (slow, slow.where("value > 1"), fast)
    )
    assert of_slow == again != of_fast


@pytest.mark.thorough
def test_a_source_of_results_is_told_by_its_path(spark: SparkSession, tmp_path: Path) -> None:
    clicks, views, _ = write_folders(tmp_path)
    for each in (clicks, views):
        run(counted(timed(spark, each)), tmp_path / f"of {each.name}")
    found = [
        StreamInput(gw.read_output_stream(spark, tmp_path / f"of {name}" / "out")).facts.sources
        for name in ("clicks", "views", "clicks")
    ]
    assert found[0] == found[2] != found[1]
    assert all(len(each) == 1 for each in found)


def test_a_digest_tells_nothing_of_a_path(spark: SparkSession, tmp_path: Path) -> None:
    clicks, *_ = write_folders(tmp_path)
    frame = streamed(spark, clicks, seconds(ROW))
    facts = join_inputs([[StreamInput(frame, "clicks", "ts")]])[0].facts
    assert str(tmp_path) not in str(facts.as_json)


RELATION = "StreamingRelation DataSource(org.apache.spark.sql.classic.SparkSession@{}, json), "


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (RELATION.format("1a2b") + "FileSource[/in], [k#0, v#1L]", None, True),
        (RELATION.format("3c4d") + "FileSource[/in], [k#7, v#8L], name=<Unassigned>", None, True),
        (RELATION.format("1a2b") + "FileSource[/in/#2], [k#0]", "FileSource[/in/#1], [k#0]", False),
        (
            RELATION.format("1a2b") + "FileSource[/c@dead], [k#0]",
            "FileSource[/c@beef], [k#0]",
            False,
        ),
    ],
)
def test_numbers_of_a_session_are_left_out_and_those_of_paths_are_not(
    one: str, other: str | None, is_same: bool
) -> None:
    plan = "== Analyzed Logical Plan ==\nk: string\n{}\n\n== Optimized Logical Plan ==\n"
    known = RELATION.format("ffff") + (other or "FileSource[/in], [k#3, v#4L]")
    read = [read_sources(plan.format(each)) for each in (one, known)]
    assert [len(each) for each in read] == [1, 1]
    assert (read[0] == read[1]) == is_same


def test_inputs_that_could_change_places_unseen_are_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def of(sources: tuple[str, ...], shape: str = "k string", name: str | None = None) -> Any:
        frame = object()
        return SimpleNamespace(frame=frame, name=name, facts=InputFacts(name, shape, sources))

    def warned(*inputs: Any) -> bool:
        caplog.clear()
        warn_of_alike(inputs)
        return "name them" in caplog.text

    alone = of(())
    assert warned(of(()), of(()))
    assert warned(of(("s",)), of(("s",)))
    assert not warned(alone, alone)  # they may change places
    assert not warned(of(("s",)), of(("t",)))
    assert not warned(of((), name="a"), of(()))
    assert not warned(of(()), of((), "k long"))


def test_options_that_spark_hides_tell_nothing(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    rate = spark.readStream.format("rate").load()
    assert len(StreamInput(rate).facts.sources) == 1
    text = read_plan_text(rate).replace("rate,", "rate, topic=*********(redacted),")
    monkeypatch.setattr(
        "gpu_windows.spark_glue.dataframes.stream_inputs.read_plan_text", lambda _: text
    )
    assert StreamInput(rate).facts.sources == ()
