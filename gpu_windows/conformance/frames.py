"""A scenario as a query of the public API on a DataFrame, and its rows in the scenario's words."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import gpu_windows as gw
from gpu_windows.conformance.scenario import Record
from gpu_windows.conformance.translate import Case
from gpu_windows.functions import Aggregates
from gpu_windows.options import Options
from gpu_windows.query import WINDOW_END, WINDOW_START
from gpu_windows.rules import LONG_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

INSTANT = pa.timestamp("us", tz="UTC")

#: A small session: scenarios are small, so the fewer tasks the better.
_CONFIGURATION: dict[str, bool | float | int | str | None] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class SharedSession:
    """The active session, or one that is started for scenarios.

    Parameters
    ----------
    log_level : str
        Of one that is started.
    """

    def __init__(self, log_level: str = "ERROR") -> None:
        self._log_level = log_level
        self._started: SparkSession | None = None

    def get(self) -> SparkSession:
        """Return the session."""
        from pyspark.sql import SparkSession

        active = SparkSession.getActiveSession()
        if active is None:
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            builder = SparkSession.builder.master("local[2]").appName("gpu-windows conformance")
            settings = {**_CONFIGURATION, "spark.log.level": self._log_level}
            active = self._started = builder.config(map=settings).getOrCreate()
        return active

    def close(self) -> None:
        """Stop the session if it was started here."""
        if self._started is not None:
            self._started.stop()


def table_of(records: Sequence[Record], case: Case, ticks_per_ms: int) -> pa.Table:
    """Return records as rows, their times as instants."""
    ticks = [record.ts * ticks_per_ms for record in records]
    return pa.table(
        {
            "key": pa.array([record.key for record in records], pa.string()),
            "ts": pa.array(ticks, pa.int64()).cast(INSTANT),
            "value": pa.array([record.value for record in records], pa.float64()),
            "seq": pa.array([record.seq for record in records], pa.int64()),
            "gap": pa.array([case.gap(record.value) for record in records], pa.int64()),
        }
    )


def outputs_of(
    rows: DataFrame, case: Case, options: Options, watermarks: gw.WatermarkStrategy
) -> gw.Outputs:
    """Return the outputs of a scenario's query."""
    windowed = (
        gw.stream(rows)
        .event_time("ts", watermarks)
        .key_by("key")
        .window(case.assigner)
        .trigger(case.trigger)
        .allowed_lateness(timedelta(microseconds=case.allowed_lateness))
        .order_by("seq")
        .options(**vars(options))
    )
    if case.evictor is not None:
        windowed = windowed.evictor(case.evictor)
    function = case.function.window_function
    if isinstance(function, Aggregates):
        return windowed.outputs(**{bound.name: bound.aggregate for bound in function.built_in})
    return windowed.outputs(function)


def emissions_of(rows: pa.Table, case: Case, ticks_per_ms: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of a result as emissions."""
    starts, ends = (
        rows[name].cast(INSTANT).cast(pa.int64()).to_pylist() for name in (WINDOW_START, WINDOW_END)
    )
    others = rows.drop_columns([WINDOW_START, WINDOW_END]).to_pylist()
    for row, start, end in zip(others, starts, ends, strict=True):
        bounds = [None if tick is None else tick // ticks_per_ms for tick in (start, end)]
        yield {
            "key": row["key"],
            "window_start": bounds[0],
            "window_end": bounds[1],
            **case.function.payload(row),
            "timestamp": LONG_MAX if bounds[1] is None else bounds[1] - 1,
        }
