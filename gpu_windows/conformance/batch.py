"""The Spark batch runner of scenarios: the public API, a millisecond being 1,000 ticks."""

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
from gpu_windows.functions import Aggregates, Collect
from gpu_windows.options import Options
from gpu_windows.planner import plan as make_plan
from gpu_windows.query import WINDOW_END, WINDOW_START
from gpu_windows.rules import LONG_MAX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TICKS_PER_MS = 1_000
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

    #: A tick is a microsecond, as in Spark's TIMESTAMP.
    ticks_per_ms = _TICKS_PER_MS

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
        if any(abs(record.ts) > LONG_MAX // _TICKS_PER_MS for record in scenario.records):
            return "a timestamp is beyond the range of TIMESTAMP"
        return None

    def run(self, scenario: Scenario, case: Case) -> Run:
        """Run a scenario as a batch job and compare."""
        plan = make_plan(case.query(self._options), bounded=True, spark=True)
        rows = _answer(_input(self._session(), scenario), case, self._options).toArrow()
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


def _input(spark: SparkSession, scenario: Scenario) -> DataFrame:
    records = scenario.records
    ticks = [record.ts * _TICKS_PER_MS for record in records]
    table = pa.table(
        {
            "key": pa.array([record.key for record in records], pa.string()),
            "ts": pa.array(ticks, pa.int64()).cast(_INSTANT),
            "value": pa.array([record.value for record in records], pa.float64()),
            "seq": pa.array([record.seq for record in records], pa.int64()),
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
    function = case.function.window_function
    answer: DataFrame
    if isinstance(function, Aggregates):
        answer = windowed.aggregate(**{bound.name: bound.aggregate for bound in function.bound})
    elif isinstance(function, Collect):
        answer = windowed.collect(*function.columns)
    else:
        answer = windowed.reduce(function.function, function.columns)
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
            "window_start": _ms(start),
            "window_end": _ms(end),
            **payload(row),
            "timestamp": _ms(end) - 1,
        }


def _ms(ticks: int) -> float:
    """Return whole milliseconds as int; others show up as a difference."""
    return ticks // _TICKS_PER_MS if ticks % _TICKS_PER_MS == 0 else ticks / _TICKS_PER_MS
