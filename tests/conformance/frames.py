"""A scenario as a query of the public API on a DataFrame, and its rows in the scenario's words."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpu_windows.planning.kinds.window import WINDOW_END, WINDOW_START
from tests.conformance.cases import INSTANT, Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
            builder = SparkSession.builder.master("local[2]").appName("python -m tests.conformance")
            settings = {**_CONFIGURATION, "spark.log.level": self._log_level}
            active = self._started = builder.config(map=settings).getOrCreate()
        return active

    def close(self) -> None:
        """Stop the session if it was started here."""
        if self._started is not None:
            self._started.stop()


def emissions_of(rows: pa.Table, case: Case, ticks_per_ms: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of a result as emissions."""
    bounds = {name: _ticks(rows, name, ticks_per_ms) for name in (WINDOW_START, WINDOW_END)}
    others = rows.drop_columns([name for name in bounds if name in rows.column_names]).to_pylist()
    for row, start, end in zip(others, *bounds.values(), strict=True):
        yield case.emission({**row, WINDOW_START: start, WINDOW_END: end})


def _ticks(rows: pa.Table, name: str, ticks_per_ms: int) -> list[int | None]:
    """Return the times of a column in milliseconds; nulls if there is none."""
    if name not in rows.column_names:
        return [None] * len(rows)
    ticks = rows[name].cast(INSTANT).cast(pa.int64()).to_pylist()
    return [None if tick is None else tick // ticks_per_ms for tick in ticks]
