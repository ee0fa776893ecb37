"""Streams that tests run: micro-batches of files, kinds of queries, what they must give."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import gpu_windows as gw
from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import FOLDER
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.monitoring.progress import BatchMetrics
from gpu_windows.operators.base import Emission
from gpu_windows.operators.build import build_operator
from gpu_windows.planning.kinds.window import WINDOW_END, WINDOW_START
from gpu_windows.planning.own_columns import REASON
from gpu_windows.planning.plan import Plan
from tests.operators.joins.rows import instants
from tests.planning.queries import rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECOND = 1_000_000
BEGIN = 1_700_000_000 * SECOND
AGGREGATES = {
    "n": gw.count(),
    "total": gw.sum("v"),
    "top": gw.max("v"),
    "spread": gw.stddev("v"),
    "first": gw.first("text"),
}
WATERMARKS = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")


def batches(count: int = 4, rows: int = 400) -> list[pa.Table]:
    """Rows of a minute each, some of them late, some without a time."""
    rng = np.random.default_rng(11)
    found = []
    for number in range(count):
        at = BEGIN + number * 60 * SECOND + rng.integers(0, 60 * SECOND, rows)
        at[rng.random(rows) < 0.05] -= 90 * SECOND
        ticks = pa.array(at, mask=rng.random(rows) < 0.02)
        found.append(
            pa.table(
                {
                    "ts": ticks.cast(pa.timestamp("us", "UTC")),
                    "k": rng.integers(0, 20, rows),
                    "v": rng.integers(0, 100, rows) / 4,
                    "text": rng.choice(["x", "y", "z"], rows),
                    "seq": np.arange(number * rows, (number + 1) * rows),
                }
            )
        )
    return found


def windowed(source: Any, assigner: gw.functions.WindowAssigner) -> gw.typing.WindowedStream:
    timed = gw.stream(source).event_time("ts", WATERMARKS)
    return timed.key_by("k").window(assigner).arrival_order("seq").options(device="cpu", shards=5)


def streamed(
    spark: SparkSession, folder: Path, like: pa.Table | None = None, per_batch: int = 1
) -> DataFrame:
    """A file of a folder in each micro-batch, or ``per_batch``; ``like``: has their columns."""
    schema = spark.createDataFrame(batches(1, 1)[0] if like is None else like).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", per_batch)
    return reader.parquet(str(folder))


def files(folder: Path, tables: list[pa.Table]) -> None:
    """Write a file a batch; Spark takes them in order of their time, each once."""
    folder.mkdir(exist_ok=True)
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (BEGIN // SECOND + number,) * 2)


def seconds(rows: list[tuple[str, int, int]]) -> pa.Table:
    """Rows of a key, a second and a value."""
    return instants([(key, BEGIN + at * SECOND, value) for key, at, value in rows])


def two_streams(
    spark: SparkSession, folder: Path, *sides: list[list[tuple[str, int, int]]]
) -> list[DataFrame]:
    """Two streams with as many micro-batches of `seconds`."""
    for name, tables in zip(("left", "right"), sides, strict=True):
        files(folder / name, [seconds(rows) for rows in tables])
    return [streamed(spark, folder / name, seconds([("a", 0, 0)])) for name in ("left", "right")]


def expected(
    made: gw.typing.Outputs, tables: list[pa.Table], bound_ms: int = 5_000
) -> tuple[pa.Table, pa.Table]:
    """Results and late rows of `emissions`."""
    return expected_of(made.plan, tables, bound_ms)


def expected_of(
    plan: Plan, tables: list[pa.Table], bound_ms: int = 5_000
) -> tuple[pa.Table, pa.Table]:
    """Results and late rows of `emissions_of`."""
    found = emissions_of(plan, tables, bound_ms)
    results = pa.concat_tables([e.results for e in found if len(e.results)])
    return results, pa.concat_tables([e.late for e in found if e.late.num_columns])


def emissions(
    made: gw.typing.Outputs, tables: list[pa.Table], bound_ms: int = 5_000
) -> list[Emission]:
    """What `emissions_of` gives of a query."""
    return emissions_of(made.plan, tables, bound_ms)


def emissions_of(plan: Plan, tables: list[pa.Table], bound_ms: int = 5_000) -> list[Emission]:
    """What an operator gives that sees the watermark of its rows after each batch."""
    operator = build_operator(plan)
    found: list[Emission] = []
    latest = 0
    for table in [*tables, None]:
        if latest:
            watermark = latest - bound_ms * 1_000 - 1
            found += operator.advance_watermark(watermark)
        if table is None:
            continue
        at = table.schema.get_field_index("ts")
        ticks = table["ts"].cast(pa.int64())
        batch = table.set_column(at, "ts", ticks).select(plan.input_columns)
        found += operator.process(batch)
        latest = max(latest, pa.compute.max(ticks).as_py())
    return found


ASSIGNERS = {
    "tumbling": gw.TumblingEventTimeWindows.of("20 seconds"),
    "sliding": gw.SlidingEventTimeWindows.of("1 minute", "15 seconds"),
    "fine": gw.SlidingEventTimeWindows.of("1 minute", "2 seconds"),
    "cumulative": gw.CumulativeEventTimeWindows.of("1 minute", "20 seconds"),
    "sessions": gw.EventTimeSessionWindows.with_gap("4 seconds"),
    "lateness": gw.TumblingEventTimeWindows.of("1 minute"),
    "evictor": gw.SlidingEventTimeWindows.of("1 minute", "30 seconds"),
    "continuous": gw.TumblingEventTimeWindows.of("1 minute"),
    "count window": gw.GlobalWindows(),
    "top": gw.SlidingEventTimeWindows.of("1 minute", "15 seconds"),
}


def outputs_of(name: str, source: Any, shards: int = 5) -> gw.typing.Outputs:
    """Return the outputs of a kind of query."""
    made = windowed(source, ASSIGNERS[name]).options(shards=shards)
    if name == "lateness":
        made = made.allowed_lateness("1 minute").with_firing_columns()
    if name == "evictor":
        made = made.evictor(gw.CountEvictor.of(3))
    if name == "continuous":
        made = made.trigger(gw.ContinuousEventTimeTrigger.of("15 seconds"))
    if name == "count window":
        made = made.trigger(gw.CountTrigger.of(5)).evictor(gw.CountEvictor.of(8))
    if name == "top":
        return made.with_outputs().top(
            3, ["text", "v"], descending=[True, False], columns=["seq", "v"]
        )
    return made.with_outputs().aggregate(**AGGREGATES)


def over_outputs(kind: str, source: Any, shards: int = 3) -> gw.typing.Outputs:
    """Return the outputs of a kind of aggregates over frames."""
    keyed = gw.stream(source).event_time("ts", WATERMARKS).key_by("k")
    frames: dict[str, gw.typing.Frame] = {
        "time": gw.Range("30 seconds"),
        "rows": gw.Rows(4),
        "from the first": gw.Range(),
        "to come": gw.Range("10 seconds", "20 seconds"),
    }
    more: dict[str, Any] = {}
    if kind == "from the first":
        more = {"number": gw.row_number(), "rank": gw.rank(), "before": gw.lag("seq"),
                "dense": gw.dense_rank()}  # fmt: skip
    over = keyed.over(frames[kind]).arrival_order("seq").options(device="cpu", shards=shards)
    return over.with_outputs().aggregate(["seq", "text"], **AGGREGATES, **more)


def run_to_the_end(outputs: gw.typing.Outputs, folder: Path) -> None:
    out, state = str(folder / "out"), str(folder / "state")
    gw.write_stream(outputs, out, state, trigger={"availableNow": True}).awaitTermination()


def metrics_in(folder: Path) -> list[BatchMetrics]:
    """What the last commit of a query says of its latest micro-batches, of every start."""
    last = CommitLog(LocalFiles(str(folder / "state" / FOLDER))).last()
    return [] if last is None else [BatchMetrics.from_json(each) for each in last.metrics]


def check_written(
    spark: SparkSession, folder: Path, outputs: gw.typing.Outputs, tables: list[pa.Table]
) -> set[str]:
    """Compare what a query has written with `expected`; return the reasons of late rows."""
    results, late = expected(outputs, tables)
    assert results_in(spark, folder) == rows_of(results)
    assert len(results) > 100
    back = gw.read_output(spark, folder / "out", "late").toArrow()
    for name in (REASON, "seq"):
        assert sorted(back[name].to_pylist()) == sorted(late[name].to_pylist())
    return set(late[REASON].to_pylist())


def results_in(spark: SparkSession, folder: Path) -> list[Any]:
    got = gw.read_output(spark, folder / "out").toArrow()
    as_ticks = [
        f.with_type(pa.int64()) if f.name in (WINDOW_START, WINDOW_END) else f for f in got.schema
    ]
    return rows_of(got.cast(pa.schema(as_ticks)))
