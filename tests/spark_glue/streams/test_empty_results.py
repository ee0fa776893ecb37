"""Streaming queries that are started again with more results, which begin empty if they may."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import FOLDER
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.errors import OutputError, QueryError, StateMismatchError
from gpu_windows.spark_glue.contract.manifest import Manifest
from tests.lanes import quick
from tests.spark_glue.stream_runs import BEGIN, SECOND, WATERMARKS, files, streamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLD: dict[str, gw.typing.Aggregate] = {"n": gw.count(), "mean": gw.mean("v")}
NEW: dict[str, gw.typing.Aggregate] = {"total": gw.sum("v"), **OLD, "least": gw.min("w")}
ADDED = ["total", "least"]


def table(seconds: Sequence[int]) -> pa.Table:
    at = pa.array([BEGIN + each * SECOND for each in seconds])
    columns = {
        "k": [each % 2 for each in seconds],
        "v": [*seconds],
        "w": [-each for each in seconds],
    }
    return pa.table({"ts": at.cast(pa.timestamp("us", "UTC")), **columns})


#: One micro-batch each. The first start ends after the second, in a window of 60 seconds.
TABLES = [table(range(50)), table(range(50, 90)), table(range(90, 130)), table(range(130, 200))]
CUT = 90


def outputs(
    spark: SparkSession, root: Path, given: Mapping[str, gw.typing.Aggregate], shards: int = 2
) -> gw.typing.Outputs:
    frame = streamed(spark, root / "in", TABLES[0])
    windowed = (
        gw.stream(frame)
        .event_time("ts", WATERMARKS)
        .key_by("k")
        .window(gw.TumblingEventTimeWindows.of("1 minute"))
    )
    return windowed.options(device="cpu", shards=shards).with_outputs().aggregate(**given)


def write(made: gw.typing.Outputs, root: Path, out: str = "out", **given: Any) -> None:
    query = gw.write_stream(
        made, root / out, root / "state", trigger={"availableNow": True}, **given
    )
    query.awaitTermination()


def results(spark: SparkSession, root: Path, out: str = "out") -> list[tuple[Any, ...]]:
    """Window, key and all else, in their order; the window in minutes."""
    rows = gw.read_output(spark, root / out).toArrow().to_pylist()
    for row in rows:
        row["window_start"] = minute(int(row["window_start"].timestamp()) - BEGIN // SECOND)
        del row["window_end"]
    return sorted((row.pop("window_start"), row.pop("k"), row) for row in rows)


def expected(window: int, key: int, cut: int = CUT) -> dict[str, Any]:
    inside = [each for each in range(200) if minute(each) == window and each % 2 == key]
    later = [each for each in inside if each >= cut]
    return {
        "total": sum(later) if later else None,
        "n": len(inside),
        "mean": sum(inside) / len(inside),
        "least": -max(later) if later else None,
    }


def minute(second: int) -> int:
    """Return the number of the window of a row; that of the first row has the number 0."""
    return (BEGIN // SECOND + second) // 60 - BEGIN // SECOND // 60


@pytest.fixture(scope="module")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A query that was stopped after two files; two more have come."""
    root = tmp_path_factory.mktemp("begun")
    begin(spark, root)
    return root


def begin(spark: SparkSession, root: Path) -> None:
    files(root / "in", TABLES[:2])
    write(outputs(spark, root, OLD), root)
    files(root / "in", TABLES)


@pytest.fixture
def root(begun: Path, tmp_path: Path) -> Path:
    """A copy of its checkpoint and results."""
    ignored = shutil.ignore_patterns("in")
    return Path(shutil.copytree(begun, tmp_path / "root", ignore=ignored))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


@pytest.mark.parametrize("shards", quick([2, 3], 2))
def test_it_begins_empty_where_the_user_says_so(
    spark: SparkSession, begun: Path, root: Path, shards: int
) -> None:
    """The path has more columns from then on: null in results that were there before."""
    before = results(spark, root)
    write(outputs(spark, begun, NEW, shards), root, begin_empty=ADDED)
    found = results(spark, root)
    assert len(found) > len(before) > 0
    nothing = {"total": None, "least": None}
    for window, key, row in found:
        old = [each for w, k, each in before if (w, k) == (window, key)]
        wanted = {**old[0], **nothing} if old else expected(window, key)
        assert row == {**wanted, "mean": pytest.approx(wanted["mean"])}
    assert any(0 < row["total"] < row["n"] * row["mean"] for *_, row in found if row["total"])


@pytest.mark.thorough
def test_a_later_start_needs_the_option_no_more(spark: SparkSession, tmp_path: Path) -> None:
    """Nor does it anything: what is in state does not begin again."""
    root = tmp_path
    begin(spark, root)
    (root / "in" / "3.parquet").unlink()
    write(outputs(spark, root, NEW), root, begin_empty=ADDED)
    files(root / "in", TABLES)
    write(outputs(spark, root, NEW), root, begin_empty=["total"])
    files(root / "in", [*TABLES, table(range(300, 310))])
    write(outputs(spark, root, NEW), root)
    later = [row for row in results(spark, root) if row[2]["total"] is not None]
    assert {window for window, *_ in later} == {minute(CUT), minute(130), minute(199)}
    for window, key, row in later:
        assert row == {**expected(window, key), "mean": pytest.approx(row["mean"])}


def test_it_is_refused_unless_the_user_says_so(
    spark: SparkSession, begun: Path, root: Path
) -> None:
    before = contents(root / "state")
    tried: list[dict[str, Any]] = [{}, {"begin_empty": ["total"]}]
    for given in tried:
        with pytest.raises(StateMismatchError) as error:
            write(outputs(spark, begun, NEW), root, **given)
        assert "begin_empty=['total', 'least']" in str(error.value)
        assert "function.of.least was not there, is min(w)" in str(error.value)
    assert contents(root / "state") == before


def test_what_is_no_result_cannot_begin(spark: SparkSession, begun: Path, root: Path) -> None:
    made = outputs(spark, begun, NEW)
    wrong: list[Any] = ["total", ["totals"], 3]
    for given in wrong:
        with pytest.raises(QueryError, match="names of results: total, n, mean, least"):
            write(made, root, begin_empty=given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({**NEW, "n": gw.count("v")}, r"function\.of\.n\."),
        (
            {"total": gw.sum("v"), "mean": gw.mean("v"), "least": gw.min("w")},
            r"function\.of\.n was",
        ),
        ({**NEW, "mean": gw.mean("w")}, r"function\.of\.mean\."),
    ],
    ids=["another one changed", "another one is gone", "one of the name is another one"],
)
def test_all_else_must_be_the_same(
    spark: SparkSession, begun: Path, root: Path, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(StateMismatchError, match=words):
        write(outputs(spark, begun, given), root, begin_empty=["total", "least", "mean"])


@pytest.mark.thorough
def test_results_that_were_not_delivered_lack_what_is_new(
    spark: SparkSession, begun: Path, root: Path
) -> None:
    """After a death between a commit and the sink: they are of the query as it was."""
    write(outputs(spark, begun, OLD), root)
    log = CommitLog(LocalFiles(str(root / "state" / FOLDER)))
    last = log.last()
    assert last is not None
    assert last.results
    whole = results(spark, root)
    for file in (root / "state" / FOLDER / "delivered").rglob("*"):
        file.unlink()
    shutil.rmtree(root / "out")
    files(begun / "in", [*TABLES, table(range(400, 402))])
    try:
        write(outputs(spark, begun, NEW), root, begin_empty=ADDED)
    finally:
        (begun / "in" / "4.parquet").unlink()
    found = results(spark, root)
    nothing = {"total": None, "least": None}
    again = [row for row in found if row[0] == minute(130)]
    assert [(w, k, {**row, **nothing}) for w, k, row in whole if w == minute(130)] == again
    assert {(row["n"], row["total"]) for w, _, row in found if w == minute(199)} == {(20, None)}


@pytest.mark.thorough
def test_a_start_without_a_micro_batch_has_begun_nothing(
    spark: SparkSession, begun: Path, root: Path
) -> None:
    """So the next one has to say it again; the path takes it."""
    write(outputs(spark, begun, OLD), root)  # all is read
    write(outputs(spark, begun, NEW), root, begin_empty=ADDED)
    last = CommitLog(LocalFiles(str(root / "state" / FOLDER))).last()
    assert last is not None
    assert Manifest.from_text(last.facts).begun == {}
    with pytest.raises(StateMismatchError, match="begin_empty="):
        write(outputs(spark, begun, NEW), root)
    write(outputs(spark, begun, NEW), root, begin_empty=ADDED)
    before = results(spark, root)
    write(outputs(spark, begun, OLD), root)  # a deployment that is undone
    assert [(w, k) for w, k, _ in results(spark, root)] == [(w, k) for w, k, _ in before]


def test_a_path_has_no_fewer_columns(spark: SparkSession, begun: Path, root: Path) -> None:
    write(outputs(spark, begun, NEW), root, begin_empty=ADDED)
    other = outputs(spark, begun, OLD)
    sink = gw.ParquetSink(root / "out", takes_over=True)
    with pytest.raises(OutputError, match="rows of the same columns"):
        gw.write_stream(other, sink, root / "fresh", trigger={"availableNow": True})


@pytest.mark.thorough
def test_a_stream_of_the_path_reads_on(
    spark: SparkSession, begun: Path, root: Path, tmp_path: Path
) -> None:
    """Files from before lack the new columns: a stream that begins later reads nulls."""
    write(outputs(spark, begun, NEW), root, begin_empty=ADDED)
    rows = gw.read_output_stream(spark, root / "out")
    query = (
        rows.writeStream.format("parquet")
        .option("path", str(tmp_path / "copy"))
        .option("checkpointLocation", str(tmp_path / "copied"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    copied = spark.read.parquet(str(tmp_path / "copy")).toArrow().to_pylist()
    whole = gw.read_output(spark, root / "out").toArrow().to_pylist()
    assert sorted(map(repr, copied)) == sorted(map(repr, whole))
