"""What may change from one start of a query to the next, in the order of the table of the docs."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import gpu_windows as gw
from gpu_windows.errors import StateMismatchError
from tests.lanes import quick
from tests.spark_glue.stream_runs import WATERMARKS, batches, files, streamed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = batches(3, 100)
TUMBLING = gw.TumblingEventTimeWindows.of("20 seconds")
IDLE = WATERMARKS.with_idleness("1 minute")


def greatest(rows: Any) -> int:
    """A generator of watermarks: its body may change, and its name may not."""
    return int(np.max(rows)) - 5_000_000


@dataclass(frozen=True)
class Query:
    """A query on files, part by part."""

    columns: Mapping[str, str] = field(default_factory=dict)
    where: str = "true"
    distinct: bool = False
    folder: str = "in"
    time: str = "ts"
    watermarks: gw.WatermarkStrategy = WATERMARKS
    key: str = "k"
    window: gw.functions.WindowAssigner = TUMBLING
    trigger: gw.functions.Trigger | None = None
    evictor: gw.functions.Evictor | None = None
    lateness: str | None = None
    order: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    aggregates: Mapping[str, gw.typing.Aggregate] = field(
        default_factory=lambda: {"n": gw.count(), "total": gw.sum("v")}
    )

    def outputs(self, spark: SparkSession, inputs: Path) -> gw.typing.Outputs:
        frame: DataFrame = streamed(spark, inputs / self.folder)
        for name, text in self.columns.items():
            frame = frame.selectExpr("*", f"{text} AS new").drop(name)
            frame = frame.withColumnRenamed("new", name)
        frame = frame.where(self.where)
        if self.distinct:
            frame = frame.dropDuplicates(["seq"])
        timed = gw.stream(frame).event_time(self.time, self.watermarks)
        windowed = timed.key_by(self.key).window(self.window)
        if self.trigger is not None:
            windowed = windowed.trigger(self.trigger)
        if self.evictor is not None:
            windowed = windowed.evictor(self.evictor)
        if self.lateness is not None:
            windowed = windowed.allowed_lateness(self.lateness)
        if self.order is not None:
            windowed = windowed.arrival_order(self.order)
        options = {"device": "cpu", "shards": 2, **self.options}
        return windowed.options(**options).with_outputs().aggregate(**self.aggregates)


BASE = Query()
COUNT = {"n": gw.count()}
#: What may change: the query, and what else `write_stream` is given.
ALLOWED: dict[str, tuple[Query, Mapping[str, Any]]] = {
    "nothing": (BASE, {}),
    "trigger": (BASE, {"trigger": {"processingTime": "0 seconds"}}),
    "name and keep": (BASE, {"name": "other", "keep": 7}),
    "threads and rows": (replace(BASE, options={"threads": 1, "batch_rows": 1_000}), {}),
    "path of the input": (replace(BASE, folder="mov[e]d"), {}),
    "condition before": (replace(BASE, where="seq >= 0"), {}),
    "expression before": (replace(BASE, columns={"v": "v + 0"}), {}),
    "guard": (replace(BASE, watermarks=WATERMARKS.guard("1 hour")), {}),
}
#: What may not, and the error.
REFUSED: dict[str, tuple[Query, str]] = {
    "dropDuplicates": (replace(BASE, distinct=True), "steps before was not there, is Dedup"),
    "idleness": (replace(BASE, watermarks=IDLE), "acts by the clock"),
    "window size": (
        replace(BASE, window=gw.TumblingEventTimeWindows.of("30 seconds")),
        r"window\.size was 20 s, is 30 s",
    ),
    "window class": (
        replace(BASE, window=gw.EventTimeSessionWindows.with_gap("20 seconds")),
        r"window was TumblingEventTimeWindows\(.*, is EventTimeSessionWindows\(",
    ),
    "trigger": (replace(BASE, trigger=gw.CountTrigger.of(3)), "trigger"),
    "evictor": (replace(BASE, evictor=gw.CountEvictor.of(3)), "evictor"),
    "lateness": (replace(BASE, lateness="1 minute"), "lateness"),
    "aggregate added": (
        replace(BASE, aggregates={**BASE.aggregates, "top": gw.max("v")}),
        r"function\.of\.top was not there, is max\(v\)",
    ),
    "aggregate removed": (replace(BASE, aggregates=COUNT), r"function\.of\.total was"),
    "aggregate renamed": (
        replace(BASE, aggregates={**COUNT, "sum": gw.sum("v")}),
        r"function\.of\.total was",
    ),
    "column of an aggregate": (
        replace(BASE, aggregates={**COUNT, "total": gw.sum("seq")}),
        r"function\.of\.total\.",
    ),
    "type of a column": (replace(BASE, columns={"v": "CAST(v AS BIGINT)"}), "double.* int64"),
    "key": (replace(BASE, key="text"), "keys? was"),
    "time": (
        replace(BASE, columns={"at": "ts"}, time="at"),
        "time was ts, is at",
    ),
    "bound of the watermark": (
        replace(BASE, watermarks=gw.WatermarkStrategy.for_bounded_out_of_orderness("6 seconds")),
        "5 s, is 6 s",
    ),
    "kind of watermark": (
        replace(BASE, watermarks=gw.WatermarkStrategy.for_generator(greatest)),
        "watermark",
    ),
    "order": (replace(BASE, order="seq"), "order"),
}


@pytest.fixture(scope="module")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A query that was stopped after its first file; two more have come."""
    root = tmp_path_factory.mktemp("begun")
    files(root / "in", TABLES[:1])
    write(BASE.outputs(spark, root), root)
    files(root / "in", TABLES)
    files(root / "moved", [pa.table(TABLES[0]).slice(0, 0), *TABLES[1:]])
    return root


def write(outputs: gw.typing.Outputs, root: Path, **given: Any) -> None:
    given = {"trigger": {"availableNow": True}, **given}
    query = gw.write_stream(outputs, root / "out", root / "state", **given)
    query.processAllAvailable()
    query.stop()


def results(spark: SparkSession, root: Path) -> Counter[Any]:
    return Counter(map(tuple, gw.read_output(spark, root / "out").collect()))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def copy_of(begun: Path, root: Path) -> Path:
    return Path(shutil.copytree(begun, root, ignore=shutil.ignore_patterns("in", "moved")))


@pytest.fixture
def root(begun: Path, tmp_path: Path) -> Path:
    """A copy of its checkpoint and results."""
    return copy_of(begun, tmp_path / "root")


@pytest.fixture(scope="module")
def unchanged(
    spark: SparkSession, begun: Path, tmp_path_factory: pytest.TempPathFactory
) -> Counter[Any]:
    """What the query gives that goes on unchanged."""
    root = copy_of(begun, tmp_path_factory.mktemp("unchanged") / "root")
    write(BASE.outputs(spark, begun), root)
    return results(spark, root)


@pytest.mark.parametrize("name", quick(ALLOWED))
def test_what_may_change_changes_no_result(
    spark: SparkSession, begun: Path, root: Path, unchanged: Counter[Any], name: str
) -> None:
    query, given = ALLOWED[name]
    before = results(spark, root)
    write(query.outputs(spark, begun), root, **given)
    assert results(spark, root) == unchanged
    assert before < unchanged


@pytest.mark.parametrize("name", quick(REFUSED, "aggregate added", "window size"))
def test_what_may_not_change_is_refused_before_anything_is_touched(
    spark: SparkSession, begun: Path, root: Path, name: str
) -> None:
    query, text = REFUSED[name]
    before = contents(root)
    with pytest.raises(StateMismatchError, match=text) as error:
        write(query.outputs(spark, begun), root)
    assert "start a changed one on a new checkpoint" in str(error.value)
    assert contents(root) == before


@pytest.mark.thorough
def test_a_folder_is_read_elsewhere_by_a_pattern_alone(
    spark: SparkSession, begun: Path, root: Path
) -> None:
    """Spark looks once more at the files of the last micro-batch, below the path that is given."""
    with pytest.raises(StreamingQueryException, match=r"Wrong basePath .*/moved"):
        write(replace(BASE, folder="moved").outputs(spark, begun), root)
    write(replace(BASE, folder="[m]oved").outputs(spark, begun), root)
