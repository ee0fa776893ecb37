"""Rows with the windows that they are in: Flink's windowing table-valued functions alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.functions.vector_process import RowsBatch, VectorProcess, VectorProcessFunction
from gpu_windows.functions.vector_results import Rows, VectorResult
from gpu_windows.functions.vector_window import VectorWindowFunction, WindowBatch
from gpu_windows.vocabulary.windows import SlicedAssigner

Ints = NDArray[np.int64]

#: Columns that are added to rows: the bounds of a window, and its last tick.
WINDOW_COLUMNS = ("window_start", "window_end", "window_time")


@dataclass(frozen=True)
class WindowRows(VectorProcessFunction):
    """Emits each row once for every window that it is in, so not in gaps between windows.

    Parameters
    ----------
    assigner : SlicedAssigner
    instant : pyarrow.DataType
        The type of the columns of windows.
    """

    assigner: SlicedAssigner
    instant: pa.DataType
    order_free: ClassVar[bool] = True

    def process_batch(self, batch: RowsBatch) -> VectorResult:
        """Return the rows, each with its windows in Flink's order."""
        assert batch.timestamps is not None
        places, starts, ends = windows_of(batch.timestamps, self.assigner)
        rows = batch.rows.take(pa.array(places))
        bounds = zip(WINDOW_COLUMNS, (starts, ends, ends - 1), strict=True)
        for name, ticks in bounds:
            rows = rows.append_column(name, pa.array(ticks).cast(self.instant))
        return VectorResult(rows=(rows, batch.places[places]))


def windows_of(times: Ints, assigner: SlicedAssigner) -> tuple[Ints, Ints, Ints]:
    """Find the windows that rows are in.

    Parameters
    ----------
    times : int64[n]
        Ticks within the assigner's ``usable_ticks``.
    assigner : SlicedAssigner

    Returns
    -------
    places : int64[m]
        The row of each window, ascending. The latest window of a row comes first, of those with the
        same start the shortest: Flink's order.
    starts, ends : int64[m]
    """
    grid, units = assigner.grid(), assigner.units
    slices = np.asarray(rules.slice_of(rules.unit_of(times, units), grid))
    first = np.asarray(rules.first_window(slices, grid))
    counts = np.asarray(rules.last_window(slices, grid)) - first + 1
    counts[np.broadcast_to(rules.is_gap(slices, grid), slices.shape)] = 0
    places = np.repeat(np.arange(len(times)), counts)
    rank = np.arange(len(places)) - (np.cumsum(counts) - counts)[places]
    windows = first[places] + (rank if grid.steps else counts[places] - 1 - rank)
    if grid.steps:
        some = ~np.asarray(rules.is_repeated(windows, grid, units))
        places, windows = places[some], windows[some]
    starts, ends = rules.start_of(windows, grid), rules.end_of(windows, grid)
    return places, rules.tick_of(starts, units), rules.tick_of(ends, units)


@dataclass(frozen=True)
class InWindows(VectorProcess):
    """`WindowRows`, and the columns that it is given; see `VectorProcess`."""

    function: WindowRows
    result_time: ClassVar[str | None] = WINDOW_COLUMNS[2]

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """The times whose windows fit int64 ticks."""
        return self.function.assigner.usable_ticks

    def describe(self) -> str:
        """Return a description of the windows and the columns of rows."""
        windows = self.function.assigner.describe()
        return f"rows in windows, {windows}: {', '.join(self.display_names)}"


@dataclass(frozen=True)
class MergedWindowRows(VectorWindowFunction):
    """Emits the rows of windows that have merged, in order of arrival.

    Parameters
    ----------
    instant : pyarrow.DataType
        The type of the time of windows.
    """

    instant: pa.DataType
    result_time: ClassVar[str | None] = WINDOW_COLUMNS[2]

    def process(self, batch: WindowBatch) -> Rows:
        """Return the rows with the last tick of their windows."""
        places = batch.places
        last = batch.windows.column("window_end").cast(pa.int64()).to_numpy()[places] - 1
        time = pa.array(last).cast(self.instant)
        return batch.rows.append_column(WINDOW_COLUMNS[2], time), places

    def describe(self) -> str:
        """Return a description for ``explain()``."""
        return "rows in windows"
