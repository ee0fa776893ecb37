"""The streaming demo from start to end: replay flights, watch the query, check what it wrote."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.console import Console

import gpu_windows as gw
from examples.flights import board, early, flights, replay, stages
from gpu_windows.commits.records import COMMITS, LATE, OUTPUTS, OWNERS
from gpu_windows.errors import GpuWindowsError
from gpu_windows.planning.own_columns import REASON
from gpu_windows.vocabulary.options import Device

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Where results and late rows go unless told otherwise.
OUTPUT = Path("gpu-windows-demo-streaming")
#: Weeks that are replayed.
WEEKS = 18

#: Departures of windows whose early results are compared.
_ENOUGH = 100


def run(
    output: Path = OUTPUT,
    *,
    weeks: int = WEEKS,
    device: Device = "auto",
    console: Console | None = None,
) -> board.Summary:
    """Run the streaming demo.

    Parameters
    ----------
    output : Path
        Folder of what is written, for `gpu_windows.read_output`; an earlier run's is replaced.
    weeks : int
        That are replayed, a micro-batch each.
    device : {"auto", "cpu", "cuda"}
        What the kernels run on.
    console : Console, optional
        Where to write.

    Raises
    ------
    GpuWindowsError
        If the data, Java or the device are missing, or the stream's answer is not that of a batch
        query; the message says what to do.
    """
    console = Console() if console is None else console
    with stages.bars(console) as bars:
        with stages.phase(bars, "Reading the flights") as advance:
            path = flights.cached_flights(wrap=stages.tracked(advance))
            reports = replay.reported(pd.read_parquet(path), weeks)
        with stages.phase(bars, f"Starting Spark on {stages.CORES} cores"):
            spark = stages.session()
    board.describe(console, len(reports), weeks)
    with stages.stopping(spark), tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "in"
        replay.write(reports, source)
        summary = compute(spark, source, output, device=device, console=console)
    board.show(console, summary)
    if not summary.check.is_good:
        rule = "final results must be those of a batch query, but for late rows"
        raise GpuWindowsError(rule, value=summary.check)
    return summary


def compute(
    spark: SparkSession, source: Path, output: Path, *, device: Device, console: Console
) -> board.Summary:
    """Run the query over files, a micro-batch each, and compare with a batch query over all.

    Parameters
    ----------
    spark : SparkSession
    source : Path
        Folder of files as `examples.flights.replay.write` makes them; a checkpoint is put next
        to it.
    output : Path
        See `run`.
    device : {"auto", "cpu", "cuda"}
        Where kernels run.
    console : Console
        Where to show how it goes.
    """
    for part in (OWNERS, COMMITS, *OUTPUTS):
        shutil.rmtree(output / part, ignore_errors=True)
    files = spark.readStream.schema(replay.SCHEMA).option("maxFilesPerTrigger", 1)
    trigger = gw.ContinuousEventTimeTrigger.of("7 days")
    streamed = windowed(files.parquet(str(source)), device).trigger(trigger)
    outputs = streamed.with_firing_columns().with_outputs().aggregate(**_aggregates())
    began, checkpoint = time.perf_counter(), str(source.with_name("checkpoint"))
    query = gw.write_stream(
        outputs, str(output), checkpoint, trigger={"availableNow": True}, name="flights"
    )
    metrics = gw.watch(query, console=console, beside=board.Board(output))
    seconds = time.perf_counter() - began
    results, back = (_frame(gw.read_output(spark, output, kind)) for kind in OUTPUTS)
    every = windowed(spark.read.schema(replay.SCHEMA).parquet(str(source)), device)
    batch = _frame(every.with_outputs().aggregate(**_aggregates()).result())
    assert metrics.last is not None
    assert metrics.last.watermark is not None
    late = back[back[REASON] == "late"]
    return board.Summary(
        metrics=metrics,
        seconds=seconds,
        timings={str(k): int(n) for k, n in results["timing"].value_counts().items()},
        early=early.early(results, _ENOUGH),
        check=early.check(results, late, batch, metrics.last.watermark),
        late=output / LATE,
    )


def windowed(source: DataFrame, device: Device) -> gw.typing.WindowedStream:
    """Return the windows of the demo, over reports."""
    watermarks = gw.WatermarkStrategy.for_bounded_out_of_orderness("1 day")
    timed = gw.stream(source).event_time("dep", watermarks).key_by("origin", "carrier")
    made = timed.window(gw.TumblingEventTimeWindows.of("28 days"))
    return made.options(device=device, shards=stages.CORES)


def _aggregates() -> dict[str, Any]:
    return {
        "departures": gw.count(),
        "mean_delay": gw.mean("dep_delay"),
        "max_delay": gw.max("dep_delay"),
    }


def _frame(rows: DataFrame) -> pd.DataFrame:
    frame: pd.DataFrame = rows.toArrow().to_pandas()
    return frame
