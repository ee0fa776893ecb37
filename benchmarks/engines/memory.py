"""Contestants that run in this process and return an Arrow table, and the floor of a copy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.contest import Factory, Work, stopwatch
from benchmarks.equality import canonical, digest
from benchmarks.stage import Stage


def arrow_work(stage: Stage, run: Callable[[], pa.Table]) -> Work:
    """Make a contestant of a function that returns the whole answer."""

    def result() -> pa.Table:
        table = canonical(run())
        return digest(table) if stage.digested else table

    return Work(stopwatch(run), stage.window, result)


def copy() -> Factory:
    """Copy the three columns once into fresh NumPy arrays: the floor of work in memory."""

    def factory(stage: Stage) -> Work:
        table = stage.resources.table
        times = table.set_column(1, "ts", table["ts"].cast(pa.int64()))
        chunks = [[chunk.to_numpy() for chunk in column.chunks] for column in times.columns]

        def run() -> list[NDArray[np.generic]]:
            return [np.concatenate(column) for column in chunks]

        return Work(stopwatch(run), stage.window, floor=True)

    return factory
