"""The Spark batch runner of scenarios: the public API, a millisecond being a tick."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import gpu_windows as gw
from gpu_windows.conformance.compare import compare_rows
from gpu_windows.conformance.scenario import Scenario
from gpu_windows.conformance.translate import Case
from gpu_windows.conformance.verdict import Run
from gpu_windows.functions import Aggregates, Collect, Process, Reduce
from gpu_windows.options import Options
from gpu_windows.planner import plan as make_plan
from gpu_windows.query import WINDOW_END, WINDOW_START
from gpu_windows.rules import LONG_MAX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_INSTANT = pa.timestamp("us", tz="UTC")

#: A small session: scenarios are small, so the fewer tasks the better.
_CONFIGURATION: dict[str, bool | float | int | str | None] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


class BatchRunner:
    """Runs scenarios as Spark batch jobs, each one query, in one shared session.

    Parameters
    ----------
    options : Options
        Engine and device.
    """

    #: A microsecond of Spark's TIMESTAMP stands for a millisecond of the scenario. With 1,000, the
    #: last tick of a window would lie behind its last millisecond, where a timer may fit between.
    ticks_per_ms = 1

    def __init__(self, options: Options) -> None:
        self._options = options
        self._started: SparkSession | None = None

    def close(self) -> None:
        """Stop the session, if this runner has started one."""
        if self._started is not None:
            self._started.stop()

    def skips(self, scenario: Scenario) -> str | None:
        """Return why a scenario that we could run is not run."""
        if not scenario.is_bounded:
            return "a batch has no watermarks between its rows (see the bounded_* families)"
        return None

    def run(self, scenario: Scenario, case: Case) -> Run:
        """Run a scenario as a batch job and compare."""
        plan = make_plan(case.query(self._options), bounded=True, spark=True)
        rows = _answer(_input(self._session(), scenario, case), case, self._options).toArrow()
        payload = case.function.payload
        return Run(plan.strategy, tuple(compare_rows(scenario, list(_rows(rows, payload)))))

    def _session(self) -> SparkSession:
        from pyspark.sql import SparkSession

        active = SparkSession.getActiveSession()
        if active is None:
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            builder = SparkSession.builder.master("local[2]").appName("gpu-windows conformance")
            active = self._started = builder.config(map=_CONFIGURATION).getOrCreate()
        return active


def _input(spark: SparkSession, scenario: Scenario, case: Case) -> DataFrame:
    records = scenario.records
    ticks = [record.ts for record in records]
    table = pa.table(
        {
            "key": pa.array([record.key for record in records], pa.string()),
            "ts": pa.array(ticks, pa.int64()).cast(_INSTANT),
            "value": pa.array([record.value for record in records], pa.float64()),
            "seq": pa.array([record.seq for record in records], pa.int64()),
            "gap": pa.array([case.gap(record.value) for record in records], pa.int64()),
        }
    )
    return spark.createDataFrame(table)


def _answer(rows: DataFrame, case: Case, options: Options) -> DataFrame:
    windowed = (
        gw.stream(rows)
        .event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        .key_by("key")
        .window(case.assigner)
        .trigger(case.trigger)
        .allowed_lateness(timedelta(microseconds=case.allowed_lateness))
        .order_by("seq")
        .options(engine=options.engine, device=options.device, partials=options.partials)
    )
    if case.evictor is not None:
        windowed = windowed.evictor(case.evictor)
    answer: DataFrame
    match case.function.window_function:
        case Aggregates() as function:
            aggregates = {bound.name: bound.aggregate for bound in function.built_in}
            answer = windowed.aggregate(**aggregates)
        case Collect() as function:
            answer = windowed.collect(*function.columns)
        case Reduce() as function:
            answer = windowed.reduce(function.function, function.columns)
        case Process() as function:
            answer = windowed.process(function.function, function.columns, output=function.output)
    return answer


def _rows(
    rows: pa.Table, payload: Callable[[dict[str, Any]], dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    starts, ends = (
        rows[name].cast(_INSTANT).cast(pa.int64()).to_pylist()
        for name in (WINDOW_START, WINDOW_END)
    )
    others = rows.drop_columns([WINDOW_START, WINDOW_END]).to_pylist()
    for row, start, end in zip(others, starts, ends, strict=True):
        yield {
            "key": row["key"],
            "window_start": start,
            "window_end": end,
            **payload(row),
            "timestamp": LONG_MAX if end is None else end - 1,
        }
